import { expect, test, vi } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { type Asked, FOR_EVER, someKey, turnOfLoop } from './actors.js';
import { clock } from './stopped-clock.js';
import { asleep, direct, sentAbout, setStage } from './watched-redis.js';

// A busy machine may stop a process at any place. So time passes only where a test says so.
vi.mock('../../src/base/clock.js', async (original) => {
  const { stopped } = await import('./stopped-clock.js');
  return stopped(await original());
});

describeWithShop('a turn that passes the key on', () => {
  const stage = setStage();
  const take = () => 'taken';

  /** A first turn, two callers behind it, and a contender of another process asleep. */
  async function line(asked: Asked = {}, passOnAfter = FOR_EVER) {
    const [actor, other, key] = [direct({ passOnAfter }), direct(), someKey()];
    const first = await actor.acquire(key);
    const [second, third] = [actor.acquire(key, asked), actor.acquire(key, asked)];
    const { turn: elsewhere } = await asleep(other, key);
    const before = (await sentAbout(stage(), key)).length;
    const sent = async () => (await sentAbout(stage(), key)).slice(before);
    return { actor, other, key, first, second, third, elsewhere, sent };
  }

  test.each(['the first', 'the next'] as const)(
    'the key goes to others only when the last one is over (%s is over first)',
    async (whichFirst) => {
      const { actor, other, first, second, third, elsewhere, sent } = await line({}, 50);
      first.pass(take);
      const next = await second;
      clock.now += 50;
      const [sooner, later] = whichFirst === 'the first' ? [first, next] : [next, first];
      sooner.end();
      await turnOfLoop();
      expect(await sent()).toEqual([]);
      later.end();
      const turn = await elsewhere;
      expect((await sent())[0]).toBe('yield');
      await other.release(turn);
      (await third).end();
      expect(actor.store.yielding.count).toBe(1);
    },
  );

  test('passes nothing once another process has waited for long enough', async () => {
    const { actor, key, first, second, other, elsewhere } = await line({}, 50);
    clock.now += 49;
    expect(first.pass(take)).toBe('taken');
    const next = await second;
    clock.now++;
    expect(next.pass(take)).toBeUndefined();
    expect(actor.room.waitingByKey().get(key)).toBe(1);
    first.end();
    next.end();
    await other.release(await elsewhere);
  });

  test('passes nothing under a lease that was lost', async () => {
    const { actor, key, first } = await line();
    first.lease.lose('gone');
    expect(first.pass(take)).toBeUndefined();
    first.end();
    await turnOfLoop();
    expect(actor.room.waitingByKey().get(key)).toBe(2);
  });
});
