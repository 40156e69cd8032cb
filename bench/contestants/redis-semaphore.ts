import { Mutex } from 'redis-semaphore';
import { type Contestant, LEASE_TIME, nothing, WAIT_TIME, work } from './contestant.js';

/** Its default pause of 10 ms between two looks. */
export const redisSemaphore: Contestant = {
  name: 'redis-semaphore',
  waits: 'redis',
  shop: 'plain',
  open: ({ prisma, redis }) => ({
    async sell(sale) {
      const mutex = new Mutex(redis, sale.key, {
        acquireTimeout: WAIT_TIME,
        lockTimeout: LEASE_TIME,
        onLockLost: nothing,
      });
      await mutex.acquire();
      try {
        await prisma.$transaction((tx) => work(tx, sale));
      } finally {
        sale.releases?.();
        await mutex.release();
      }
    },
    close: nothing,
  }),
};
