// A process that has used locks, closes its clients, and then has to end by itself.
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';

const [postgres, redisUrl, key, what, how] = process.argv.slice(2) as [
  string,
  string,
  string,
  'handle' | 'contention' | 'waiting',
  'prisma first' | 'redis first' | 'past the extension',
];
const redis = new Redis(redisUrl);
// The one of the pool closes only what it has itself.
redis.on('error', () => {});
const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: postgres }) });
const prisma = plain.$extends(fencedLock({ redis }));

const told = new Promise<void>((resolve) => {
  process.once('message', () => resolve());
});
await prisma.$withLock(`${key} own`, (tx) => tx.stock.count());
if (what === 'handle') await prisma.$lock(key);
if (what === 'contention') {
  process.send?.({ type: 'asking' });
  await Promise.all(Array.from({ length: 5 }, () => prisma.$withLock(key, (tx) => tx.stock.count())));
}
let turnedAway: Promise<unknown> = Promise.resolve();
if (what === 'waiting') turnedAway = prisma.$withLock(key, () => {}).catch((error: { code?: string }) => error.code);
process.send?.({ type: 'ready' });
await told;

if (how === 'prisma first') {
  await prisma.$disconnect();
  redis.disconnect();
} else if (how === 'redis first') {
  redis.disconnect();
  await prisma.$disconnect();
} else {
  redis.disconnect();
  await plain.$disconnect();
}
process.send?.({ type: 'closed', code: await turnedAway });
process.disconnect();
let rounds = 0;
setInterval(() => rounds++, 10).unref();
process.once('exit', () => console.log(`nothing left to do after ${rounds} rounds`));
