import { createClient } from 'redis';
import { lock } from 'simple-redis-mutex';
import { type Contestant, nothing, type Sale, type Surroundings, WAIT_TIME, work } from './contestant.js';

export interface Mutex {
  /** Runs `work` under the lock of the sale's key. */
  around(sale: Sale, work: () => Promise<void>): Promise<void>;
  close(): void;
}

/** It asks for node-redis, so it has a connection of its own. */
export async function openMutex({ site, leaseTime }: Pick<Surroundings, 'site' | 'leaseTime'>): Promise<Mutex> {
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
    async around(sale, work) {
      const release = await lock(redis, sale.key, { timeout: leaseTime, failAfter: WAIT_TIME });
      try {
        await work();
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
}

/** Wakes by pub/sub. */
export const simpleRedisMutex: Contestant = {
  name: 'simple-redis-mutex',
  waits: 'redis',
  shop: 'plain',
  async open(house) {
    const { prisma } = house;
    const mutex = await openMutex(house);
    return {
      sell: (sale) => mutex.around(sale, () => prisma.$transaction((tx) => work(tx, sale))),
      close: () => mutex.close(),
    };
  },
};
