// A process that ends right behind a call, while what the call had is kept for the next one.
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../src/index.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { PrismaClient } from '../generated/prisma/client.js';

const [postgres, redisUrl, key] = process.argv.slice(2) as [string, string, string];
const redis = new Redis(redisUrl);
const sent = new Map<unknown, number>();
const evalsha = redis.evalsha.bind(redis) as (...args: unknown[]) => Promise<unknown>;
redis.evalsha = ((...args: unknown[]) => {
  sent.set(args[0], (sent.get(args[0]) ?? 0) + 1);
  return evalsha(...args);
}) as typeof redis.evalsha;
const count = ({ sha1 }: { readonly sha1: string }) => sent.get(sha1) ?? 0;
const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: postgres }) });
const prisma = plain.$extends(fencedLock({ redis }));

// Seldom at the second call already on a busy machine: a turn that lasts asks whether somebody has come to wait.
const until = performance.now() + 20_000;
while (performance.now() < until) {
  const looks = count(scripts.acquire);
  await prisma.$withLock(key, (tx) => tx.stock.count(), { leaseTime: 30_000 });
  // It was not asked for, and has not been given back.
  if (count(scripts.acquire) === looks && count(scripts.release) < looks) process.exit(7);
}
process.exit(1);
