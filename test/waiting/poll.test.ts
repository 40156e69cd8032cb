import { expect, test, vi } from 'vitest';
import { Monitor } from '../redis/monitor.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { Actor, someKey } from './actors.js';
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
});
