import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { ClientClass } from '../../src/addons/nest/index.js';
// In your project: 'prisma-extension-fenced-lock' and 'prisma-extension-fenced-lock/nest', and your own generated client.
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../../test/generated/prisma/client.js';

export function createRedis(): Redis {
  const { REDIS_URL } = process.env;
  if (!REDIS_URL) throw new Error('Set DATABASE_URL and REDIS_URL, or run `npm run example -- nest`.');
  return new Redis(REDIS_URL);
}

export function createPrisma(redis: Redis) {
  const adapter = new PrismaPg({ connectionString: process.env['DATABASE_URL'] });
  // `omit`: a fence is a bigint, which JSON refuses. `timeout`: a shutdown waits for the work that runs, so this long at most.
  return new PrismaClient({ adapter, omit: { stock: { fence: true } } }).$extends(
    fencedLock({ redis, defaults: { timeout: 1_500 } }),
  );
}

/** What the client is injected by. */
export class PrismaService extends ClientClass(createPrisma) {}
