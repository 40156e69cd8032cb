import { Semaphore } from 'redis-semaphore';
import { fencedLock } from '../shipped.js';
import { type Contestant, nothing, WAIT_TIME, work } from './contestant.js';
import { isUnknown, optionsIn } from './with-lock.js';

/** Whatever row a sale is of: at most so many of all of them at a time. */
const KEY = 'permits';

function withPermit(permits: number): Contestant {
  return {
    name: `$withPermit, ${permits}`,
    waits: 'redis',
    shop: 'plain',
    open(house) {
      const prisma = house.shop('plain').$extends(fencedLock({ redis: house.redis }));
      const options = optionsIn(house);
      return {
        sell: (sale) => prisma.$withPermit(`${KEY}:${permits}`, { permits }, (tx) => work(tx, sale), options),
        isUnknown,
        close: nothing,
      };
    },
  };
}

/** Its default pause of 10 ms between two looks. */
function semaphore(permits: number): Contestant {
  return {
    name: `redis-semaphore's Semaphore, ${permits}`,
    waits: 'redis',
    shop: 'plain',
    open: ({ prisma, redis, leaseTime }) => ({
      async sell(sale) {
        const own = { acquireTimeout: WAIT_TIME, lockTimeout: leaseTime, onLockLost: nothing };
        const held = new Semaphore(redis, `${KEY}:${permits}`, permits, own);
        await held.acquire();
        try {
          await prisma.$transaction((tx) => work(tx, sale));
        } finally {
          await held.release();
        }
      },
      close: nothing,
    }),
  };
}

/** By the number of permits. */
export const PERMITS: ReadonlyMap<number, readonly Contestant[]> = new Map(
  [1, 4, 16].map((permits) => [permits, [withPermit(permits), semaphore(permits)]]),
);
