import type { lockingClient } from './client.js';
import type { Way } from './way.js';

export function withLock(prisma: ReturnType<typeof lockingClient>): Way {
  return {
    mostKeys: 1,
    run: ([key = ''], leaseTime, work) => prisma.$withLock(key, (tx, { token }) => work(tx, token), { leaseTime }),
  };
}
