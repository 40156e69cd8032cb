import type { LockingClient } from './client.js';
import type { Way } from './way.js';

/** How often an inner call fails, and its error is caught. */
const CAUGHT = 0.1;

/** All of it was to be rolled back, and `$withLock` has resolved: told as an error, so that what is there shows. */
class Resolved extends Error {
  readonly code = 'RESOLVED_ALTHOUGH_DOOMED';
}

/** Each key's part in an inner call, all in the transaction of the outer one. */
export function joined(prisma: LockingClient): Way {
  return {
    mostKeys: 2,
    run: ({ keys, leaseTime, random, operate }) =>
      operate(async (work) => {
        const isDoomed = random.next() < CAUGHT;
        await prisma.$withLock(
          keys,
          async () => {
            for (const key of keys) await prisma.$withLock(key, (tx, { token }) => work(tx, token, key));
            if (isDoomed) await prisma.$withLock(keys, () => Promise.reject(new Error('to be caught'))).catch(() => {});
          },
          { leaseTime },
        );
        if (isDoomed) throw new Resolved();
      }),
  };
}
