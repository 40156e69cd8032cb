import { createClient } from 'redis';
import { lock } from 'simple-redis-mutex';
import { type Contestant, LEASE_TIME, nothing, WAIT_TIME, work } from './contestant.js';

/** Wakes by pub/sub; it asks for node-redis, so it has a connection of its own. */
export const simpleRedisMutex: Contestant = {
  name: 'simple-redis-mutex',
  waits: 'redis',
  shop: 'plain',
  async open({ prisma, site }) {
    const redis = createClient({ url: site.redis });
    redis.on('error', nothing);
    await redis.connect();
    return {
      async sell(sale) {
        const release = await lock(redis, sale.key, { timeout: LEASE_TIME, failAfter: WAIT_TIME });
        try {
          await prisma.$transaction((tx) => work(tx, sale));
        } finally {
          sale.releases?.();
          await release();
        }
      },
      close: () => redis.destroy(),
    };
  },
};
