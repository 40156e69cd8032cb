import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
// In your project: 'prisma-extension-fenced-lock', and your own generated client.
import { FencedLockError, type FencedLockErrorCode, fencedLock } from '../../../src/index.js';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

/** These say: the sale was rolled back and may be tried again. */
const ROLLED_BACK: ReadonlySet<FencedLockErrorCode> = new Set(['LOCK_LOST', 'STALE_TOKEN', 'TRANSACTION_ABORTED']);

/** Waits in Redis. Postgres admits each sale in its own transaction, and ends the one of a frozen process. */
export function withLock({ databaseUrl, redisUrl, leaseTime }: Site): Strategy {
  const redis = new Redis(redisUrl);
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));
  return {
    sell: ({ stockId, buyer, think }) =>
      prisma.$withLock(
        `stock:${stockId}`,
        async (tx) => {
          const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id: stockId } });
          if (quantity === 0) return 'sold out';
          await think();
          await tx.stock.update({ where: { id: stockId }, data: { quantity: quantity - 1 } });
          await tx.order.create({ data: { stockId, buyer, quantity: 1 } });
          return 'sold';
        },
        { leaseTime, waitTime: PATIENCE },
      ),
    isRefusal: (error) => error instanceof FencedLockError && ROLLED_BACK.has(error.code),
    async close() {
      await prisma.$disconnect();
      redis.disconnect();
    },
  };
}
