import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
// In your project: 'prisma-extension-fenced-lock', and your own generated client.
import { fencedLock } from '../src/index.js';
import { PrismaClient } from '../test/generated/examples/client.js';

/** The client of the examples seats, coupon, webhook, nightly, imports and licences. One for each process. */
export function createClient(
  databaseUrl: string | undefined = process.env['DATABASE_URL'],
  redisUrl: string | undefined = process.env['REDIS_URL'],
) {
  if (!databaseUrl || !redisUrl) throw new Error('Set DATABASE_URL and REDIS_URL, or run `npm run example`.');
  const redis = new Redis(redisUrl);
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));
  /** The locks first: they are given back through Redis. */
  const close = async () => {
    await prisma.$disconnect();
    redis.disconnect();
  };
  return { prisma, close };
}

export type ExampleClient = ReturnType<typeof createClient>['prisma'];
