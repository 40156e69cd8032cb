import { fencedLock } from '../shipped.js';
import { type Contestant, nothing, work } from './contestant.js';

function withLock(name: string, shop: Contestant['shop']): Contestant {
  return {
    name,
    waits: 'redis',
    shop,
    open(house) {
      const prisma = house.shop(shop).$extends(fencedLock({ redis: house.redis }));
      return {
        // No async function: what it keeps while it waits would count as the lock's.
        sell(sale) {
          const sold = prisma.$withLock(sale.key, (tx) => work(tx, sale));
          // The release is sent before the caller hears of the end, and nobody waits for its answer.
          return sale.releases === undefined ? sold : sold.then(() => sale.releases?.());
        },
        close: nothing,
      };
    },
  };
}

/** On a fenced table without the guard: the client puts the condition into the write. */
export const withLockAlone = withLock('$withLock', 'plain');
export const withLockAndGuard = withLock('$withLock + guard', 'guarded');
