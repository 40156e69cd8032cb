import type { LockingClient } from './client.js';
import type { Way } from './way.js';

export function withLock(prisma: LockingClient, mostKeys = 1): Way {
  return {
    mostKeys,
    run: ({ keys, leaseTime, operate }) =>
      operate((work) => prisma.$withLock(keys, (tx, { token }) => work(tx, token), { leaseTime })),
  };
}
