import { expect, test } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { untilHolds } from '../support/eventually.js';
import { describeWithShop, gate } from '../support/shop.js';
import { PREFIX, queueName, someKey } from './actors.js';
import { asleep, direct, setStage } from './watched-redis.js';

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
});
