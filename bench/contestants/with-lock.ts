import type { PrismaClient } from '../../test/generated/prisma/client.js';
import type { House } from '../house.js';
import { fencedLock } from '../shipped.js';
import { type Contestant, nothing, work } from './contestant.js';

type Choose = (house: House) => PrismaClient;

function withLock(name: string, shop: Contestant['shop'], choose: Choose = (house) => house.shop(shop)): Contestant {
  return {
    name,
    waits: 'redis',
    shop,
    prisma: choose,
    open(house) {
      const prisma = choose(house).$extends(fencedLock({ redis: house.redis }));
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
/** BEGIN goes along with the admission. */
export const withLockAndClient = withLock('$withLock + FencedClient', 'plain', (house) => house.fencedShop);
export const withLockAndGuard = withLock('$withLock + guard', 'guarded');
