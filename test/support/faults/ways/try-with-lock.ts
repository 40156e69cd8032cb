import type { lockingClient } from './client.js';
import { NotAcquired, type Way } from './way.js';

export function tryWithLock(prisma: ReturnType<typeof lockingClient>): Way {
  return {
    mostKeys: 1,
    async run([key = ''], leaseTime, work) {
      const { acquired } = await prisma.$tryWithLock(key, (tx, { token }) => work(tx, token), { leaseTime });
      if (!acquired) throw new NotAcquired();
    },
  };
}
