import { fencedLock } from '../shipped.js';
import { type Contestant, LEASE_TIME, nothing, type Surroundings, work } from './contestant.js';

/** The answer to COMMIT was lost, and the package could not find out what became of it. */
export const isUnknown = (error: unknown): boolean => (error as { code?: unknown }).code === 'COMMIT_UNKNOWN';

/** None where the default will do: reading them takes a little of each call. */
export function optionsIn({ leaseTime }: Surroundings): { leaseTime: number } | undefined {
  return leaseTime === LEASE_TIME ? undefined : { leaseTime };
}

function withLock(name: string, shop: Contestant['shop']): Contestant {
  return {
    name,
    waits: 'redis',
    shop,
    open(house) {
      const prisma = house.shop(shop).$extends(fencedLock({ redis: house.redis }));
      const options = optionsIn(house);
      return {
        // No async function: what it keeps while it waits would count as the lock's.
        sell(sale) {
          const sold = prisma.$withLock(sale.key, (tx) => work(tx, sale), options);
          // The release is sent before the caller hears of the end, and nobody waits for its answer.
          return sale.releases === undefined ? sold : sold.then(() => sale.releases?.());
        },
        isUnknown,
        close: nothing,
      };
    },
  };
}

/** On a fenced table without the guard: the client puts the condition into the write. */
export const withLockAlone = withLock('$withLock', 'plain');
export const withLockAndGuard = withLock('$withLock + guard', 'guarded');
