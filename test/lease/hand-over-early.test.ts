import { expect, test, vi } from 'vitest';
import { describeWithShop } from '../support/shop.js';
import { type Asked, someKey, turnOfLoop } from './actors.js';
import { asleep, direct, sentAbout, setStage } from './stage.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { counted } = await import('./counted-clock.js');
  return counted(await original());
});

describeWithShop('an early turn', () => {
  const stage = setStage();

  /** A first turn, two callers behind it, and a contender of another process asleep. */
  async function line(asked: Asked = {}, maxLocalHandovers = 16) {
    const [actor, other, key] = [direct({ maxLocalHandovers }), direct(), someKey()];
    const first = await actor.acquire(key);
    const [second, third] = [actor.acquire(key, asked), actor.acquire(key, asked)];
    const { turn: elsewhere } = await asleep(other, key);
    const before = (await sentAbout(stage(), key)).length;
    const sent = async () => (await sentAbout(stage(), key)).slice(before);
    return { actor, other, key, first, second, third, elsewhere, sent };
  }

  test('one successor begins while the turn before it is not over', async () => {
    const { actor, key, first, second } = await line();
    first.early();
    expect((await second).lease).toBe(first.lease);
    expect(actor.room.waiting(key)).toBe(1);
  });

  test('there is one successor only, however often it is offered', async () => {
    const { actor, key, first, second, third } = await line();
    first.early();
    first.early();
    (await second).early();
    await turnOfLoop();
    expect(actor.room.waiting(key)).toBe(1);
    // Once the first turn is over the second has a successor of its own.
    first.leave();
    await turnOfLoop();
    expect(actor.room.waiting(key)).toBe(1);
    (await second).early();
    expect((await third).lease).toBe(first.lease);
  });

  test.each(['the first', 'the successor'] as const)(
    'the key goes to others only after both have left (%s leaves first)',
    async (whichFirst) => {
      const { actor, other, first, second, third, elsewhere, sent } = await line({ mayBeEarly: true }, 2);
      first.early();
      const successor = await second;
      const [sooner, later] = whichFirst === 'the first' ? [first, successor] : [successor, first];
      sooner.leave();
      await turnOfLoop();
      expect(await sent()).toEqual([]);
      later.leave();
      (await third).leave();
      const turn = await elsewhere;
      expect((await sent()).slice(0, 2)).toEqual(['release', 'acquire']);
      await other.release(turn);
      expect(actor.store.yielding.count).toBe(0);
    },
  );

  test('a caller that must not be early waits until the turn before it is over', async () => {
    const { actor, key, first, second } = await line({ mayBeEarly: false });
    first.early();
    await turnOfLoop();
    expect(actor.room.waiting(key)).toBe(2);
    first.leave();
    await second;
  });

  test('it counts as a hand-over', async () => {
    const { actor, key, first, second, other, elsewhere } = await line({}, 1);
    first.early();
    const successor = await second;
    first.leave();
    successor.early();
    await turnOfLoop();
    expect(actor.room.waiting(key)).toBe(1);
    successor.leave();
    await other.release(await elsewhere);
  });

  test('none begins under a lease that was lost', async () => {
    const { actor, key, first } = await line();
    first.lease.lose('gone');
    first.early();
    await turnOfLoop();
    expect(actor.room.waiting(key)).toBe(2);
    first.leave();
    await turnOfLoop();
    expect(actor.room.waiting(key)).toBe(2);
  });

  test('none begins by a turn that is over', async () => {
    const { actor, key, first, second } = await line();
    first.leave();
    await second;
    first.early();
    await turnOfLoop();
    expect(actor.room.waiting(key)).toBe(1);
  });
});
