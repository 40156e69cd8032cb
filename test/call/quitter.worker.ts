// A process that ends right behind a call, while what the call had is kept for the next one.
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { aroundScripts } from '../support/around-scripts.js';

const [postgres, redisUrl, key] = process.argv.slice(2) as [string, string, string];
const redis = new Redis(redisUrl);
const sent = { acquire: 0, release: 0 };
aroundScripts(redis, ({ name, send }) => {
  if (name === 'acquire' || name === 'release') sent[name]++;
  return send();
});
const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: postgres }) });
const prisma = plain.$extends(fencedLock({ redis }));

// Seldom at the second call already on a busy machine: a turn that lasts asks whether somebody has come to wait.
const until = performance.now() + 45_000;
while (performance.now() < until) {
  const looks = sent.acquire;
  await prisma.$withLock(key, (tx) => tx.stock.count(), { leaseTime: 30_000 });
  // It was not asked for, and has not been given back.
  if (sent.acquire === looks && sent.release < looks) process.exit(7);
}
process.exit(1);
