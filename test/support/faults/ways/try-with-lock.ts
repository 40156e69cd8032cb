import type { LockingClient } from './client.js';
import { NotAcquired, type Way } from './way.js';

export function tryWithLock(prisma: LockingClient): Way {
  return {
    mostKeys: 2,
    run: ({ keys, leaseTime, operate }) =>
      operate(async (work) => {
        const { acquired } = await prisma.$tryWithLock(keys, (tx, { token }) => work(tx, token), { leaseTime });
        if (!acquired) throw new NotAcquired();
      }),
  };
}
