import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
// In your project: 'prisma-extension-fenced-lock', and your own generated client.
import { fencedLock, type LockTx } from '../../src/index.js';
import { PrismaClient } from '../../test/generated/prisma/client.js';

/** One per process, as with every Prisma client: callers of the same client queue up without a word to Redis. */
export function createClient(
  databaseUrl: string | undefined = process.env['DATABASE_URL'],
  redisUrl: string | undefined = process.env['REDIS_URL'],
) {
  if (!databaseUrl || !redisUrl) throw new Error('Set DATABASE_URL and REDIS_URL.');
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  const redis = new Redis(redisUrl);
  const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));
  return { prisma, redis };
}

export type ShopClient = ReturnType<typeof createClient>['prisma'];

/** What a helper takes that is to run under a lock. The plain client has no place there, and its type says so. */
export type ShopTx = LockTx<ShopClient>;

/** All that sell one product have to name the same key, so it is made in one place. */
export function stockKey(stockId: number): string {
  return `stock:${stockId}`;
}
