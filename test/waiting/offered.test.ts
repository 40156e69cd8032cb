import { expect, test, vi } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { untilHolds } from '../support/eventually.js';
import { describeWithShop, gate } from '../support/shop.js';
import { PREFIX, queueName, receivers, someKey } from './actors.js';
import { asleep, direct, setStage } from './watched-redis.js';

vi.mock('../../src/base/clock.js', async (original) => {
  const { counted } = await import('./counted-clock.js');
  return counted(await original());
});

describeWithShop('an offer', () => {
  const stage = setStage();

  /** What becomes of what a turn begins with. */
  function noting() {
    const noted: string[] = [];
    const discard = () => void noted.push('discarded');
    const preopen = { open: () => void noted.push('opened'), wait: discard, discard };
    return { noted, preopen };
  }

  test('lets its caller begin beside the look that confirms it, and no turn is had before that has its answer', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const { noted, preopen } = noting();
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key, { preopen });
    noted.length = 0;
    const answered = gate();
    const looking = new Promise<void>((resolve) => {
      contender.store.beforeAnswer = () => {
        resolve();
        return answered.opened;
      };
    });
    let had = false;
    const called = turn.then((mine) => {
      had = true;
      return mine;
    });
    first.end();
    await looking;
    expect(noted).toEqual(['opened']);
    expect(had).toBe(false);
    answered.open();
    await contender.release(await called);
    expect(noted).toEqual(['opened']);
  });

  test('that is over by the time its caller looks leaves nothing begun', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const { noted, preopen } = noting();
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key, { preopen });
    noted.length = 0;
    const [entry = ''] = await stage().admin.lrange(queueName(key), 0, 0);
    const looks = contender.store.answers.count;
    // As it is read by a process that was stopped meanwhile.
    await stage().admin.publish(namesOf(PREFIX, key).wake, `${entry.split(' ')[0]} 1000`);
    await contender.store.answers.reach(looks + 1);
    await untilHolds(() => expect(noted).toEqual(['opened', 'discarded']));
    // It is not remembered at the next look, and the next offer is as good as if there had been none before.
    noted.length = 0;
    await stage().admin.publish(namesOf(PREFIX, key).wake, 'look');
    await contender.store.answers.reach(looks + 2);
    await untilHolds(() => expect(noted).toEqual(['discarded']));
    noted.length = 0;
    await holder.release(first);
    await contender.release(await turn);
    expect(noted).toEqual(['opened']);
  });

  test('to somebody else, or a release without an offer, begins nothing', async () => {
    const [holder, contender, key] = [direct(), direct(), someKey()];
    const { noted, preopen } = noting();
    const first = await holder.acquire(key);
    const { turn } = await asleep(contender, key, { preopen });
    noted.length = 0;
    const looks = contender.store.answers.count;
    const { wake } = namesOf(PREFIX, key);
    await stage().admin.publish(wake, 'somebody 1000');
    await stage().admin.publish(wake, 'look');
    await contender.store.answers.reach(looks + 1);
    await untilHolds(() => expect(noted).toEqual(['discarded']));
    await holder.release(first);
    await contender.release(await turn);
  });

  test('is not heard by the one that made it, who listens only while it waits', async () => {
    const [first, second, key] = [direct(), direct(), someKey()];
    const before = await first.acquire(key);
    const { turn } = await asleep(second, key);
    await first.release(before);
    const mine = await turn;
    await untilHolds(async () => expect(await receivers(stage().admin, key)).toBe(0));
    const next = await asleep(first, key);
    expect(await receivers(stage().admin, key)).toBe(1);
    await second.release(mine);
    await first.release(await next.turn);
  });
});
