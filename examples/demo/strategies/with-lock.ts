import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { FencedLockError, type FencedLockErrorCode, fencedLock } from '../../../src/index.js';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { sellOne } from '../sale.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

/** The errors that say: it was rolled back, and it may be run again. */
const REFUSALS: ReadonlySet<FencedLockErrorCode> = new Set(['LOCK_LOST', 'STALE_TOKEN', 'TRANSACTION_ABORTED']);

/** The same lease time in the same Redis; Postgres decides whose write counts. */
export function withLock({ databaseUrl, redisUrl, key, leaseTime, name }: Site): Strategy {
  const redis = new Redis(redisUrl);
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis, name }));
  return {
    sell: (sale) => prisma.$withLock(key, (tx) => sellOne(tx, sale), { leaseTime, waitTime: PATIENCE }),
    isRefusal: (error) => error instanceof FencedLockError && REFUSALS.has(error.code),
    async close() {
      redis.disconnect();
      await prisma.$disconnect();
    },
  };
}
