import { fencedLock } from '../../src/index.js';
import { type Contestant, nothing, work } from './contestant.js';

function withLock(name: string, shop: Contestant['shop']): Contestant {
  return {
    name,
    waits: 'redis',
    shop,
    open(house) {
      const prisma = house.shop(shop).$extends(fencedLock({ redis: house.redis }));
      return {
        async sell(sale) {
          await prisma.$withLock(sale.key, (tx) => work(tx, sale));
          // The release is sent before the caller hears of the end, and nobody waits for its answer.
          sale.releases?.();
        },
        close: nothing,
      };
    },
  };
}

/** On a fenced table without the guard: the client puts the condition into the write. */
export const withLockAlone = withLock('$withLock', 'plain');
export const withLockAndGuard = withLock('$withLock + guard', 'guarded');
