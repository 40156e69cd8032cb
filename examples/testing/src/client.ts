import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock, type LockOptions } from 'prisma-extension-fenced-lock';
import { PrismaClient } from './generated/client';

export interface Urls {
  databaseUrl: string;
  redisUrl: string;
}

/** The client of one process, and what closes it. */
export function createClient({ databaseUrl, redisUrl }: Urls, defaults: LockOptions = {}) {
  const redis = new Redis(redisUrl);
  // While Redis is away, the calls say so themselves.
  redis.on('error', () => {});
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis, defaults }));
  const close = async () => {
    await prisma.$disconnect();
    redis.disconnect();
  };
  return { prisma, close };
}

export type Client = ReturnType<typeof createClient>['prisma'];
