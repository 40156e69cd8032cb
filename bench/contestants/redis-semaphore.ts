import { Mutex } from 'redis-semaphore';
import { type Contestant, nothing, WAIT_TIME, work } from './contestant.js';

/** Its default pause of 10 ms between two looks. */
export const redisSemaphore: Contestant = {
  name: 'redis-semaphore',
  waits: 'redis',
  shop: 'plain',
  open: ({ prisma, redis, leaseTime }) => ({
    async sell(sale) {
      const mutex = new Mutex(redis, sale.key, {
        acquireTimeout: WAIT_TIME,
        lockTimeout: leaseTime,
        onLockLost: nothing,
      });
      const check = () => {
        if (!mutex.isAcquired) throw new Error('the lock was lost');
      };
      await mutex.acquire();
      try {
        await prisma.$transaction((tx) => work(tx, sale, check));
      } finally {
        sale.releases?.();
        await mutex.release();
      }
    },
    close: nothing,
  }),
};
