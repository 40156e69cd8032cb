import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
// In your project: 'prisma-extension-fenced-lock', and your own generated client.
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../../test/generated/prisma/client.js';

/** One for each process. */
export function createClient(databaseUrl: string, redisUrl: string) {
  const redis = new Redis(redisUrl);
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  // `omit`: a fence is a bigint, which JSON refuses. `timeout`: a shutdown waits for the work that runs, so this long at most.
  const prisma = new PrismaClient({ adapter, omit: { stock: { fence: true } } }).$extends(
    fencedLock({ redis, defaults: { timeout: 1_500 } }),
  );
  return { prisma, redis };
}

export type Clients = ReturnType<typeof createClient>;
