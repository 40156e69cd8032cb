import { expect, test, vi } from 'vitest';
import { Monitor } from '../redis/monitor.js';
import { untilHolds } from '../support/eventually.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { Actor, queueName, someKey } from './actors.js';
import { namesOfScripts } from './watched-redis.js';

describeWithRedis('waiting without wake-ups', (redis) => {
  const polling = (options = {}) =>
    new Actor({
      url: redis().url,
      polls: true,
      pollDelay: () => 4 + 36 * Math.random(),
      commandTimeout: 2_000,
      ...options,
    });

  test('a key is handed over, nothing is published, and no connection is opened for that', async () => {
    const [holder, contender] = [polling(), polling()];
    const key = someKey();
    const turn = await holder.acquire(key);
    const monitor = await Monitor.start(redis().url);
    const everything = vi.spyOn(contender.redis, 'duplicate');
    const waiting = contender.acquire(key);
    await contender.store.answers.reach(4);
    turn.end();
    await contender.release(await waiting);
    const sent = namesOfScripts(await monitor.about(key)).filter((verb) => verb !== 'eval');
    expect(new Set(sent)).toEqual(new Set(['acquire', 'release']));
    expect(await monitor.about(':wake')).toEqual([]);
    expect(everything).not.toHaveBeenCalled();
    expect(await contender.redis.pubsub('CHANNELS', '*')).toEqual([]);
    expect(await contender.redis.info('commandstats')).not.toMatch(/cmdstat_(publish|subscribe|pubsub\|numsub)/);
    expect([...holder.events, ...contender.events]).toEqual([]);
    monitor.stop();
  });

  test('those who wait are served in the order in which they came', async () => {
    const holder = polling();
    const key = someKey();
    const turn = await holder.acquire(key);
    const served: number[] = [];
    const waiting: Promise<void>[] = [];
    for (let each = 0; each < 4; each++) {
      // The later it comes the more often it looks: only its place can hold it back.
      const contender = polling({ pollDelay: () => 60 - each * 15 });
      waiting.push(
        contender.acquire(key).then(async (next) => {
          served.push(each);
          await contender.release(next);
        }),
      );
      await untilHolds(async () => expect(await holder.redis.llen(queueName(key))).toBe(each + 1));
    }
    turn.end();
    await Promise.all(waiting);
    expect(served).toEqual([0, 1, 2, 3]);
  });
});
