import { createClient } from 'redis';
import { lock } from 'simple-redis-mutex';
import { type Contestant, nothing, WAIT_TIME, work } from './contestant.js';

/** Wakes by pub/sub; it asks for node-redis, so it has a connection of its own. */
export const simpleRedisMutex: Contestant = {
  name: 'simple-redis-mutex',
  waits: 'redis',
  shop: 'plain',
  async open({ prisma, site, leaseTime }) {
    const redis = createClient({ url: site.redis });
    redis.on('error', nothing);
    await redis.connect();
    const duplicate = redis.duplicate.bind(redis);
    const subscribers = new Set<{ destroy(): void }>();
    redis.duplicate = ((...args: Parameters<typeof duplicate>) => {
      const subscriber = duplicate(...args);
      subscribers.add(subscriber);
      return subscriber;
    }) as typeof redis.duplicate;
    return {
      async sell(sale) {
        const release = await lock(redis, sale.key, { timeout: leaseTime, failAfter: WAIT_TIME });
        try {
          await prisma.$transaction((tx) => work(tx, sale));
        } finally {
          sale.releases?.();
          await release();
        }
      },
      close() {
        // Left to itself it ends its subscriber later than we end the server, and rejects with nobody to hear it.
        redis.removeAllListeners('end');
        for (const subscriber of subscribers) subscriber.destroy();
        redis.destroy();
      },
    };
  },
};
