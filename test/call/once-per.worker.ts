// A process that runs a job once in each interval, as cron would start it on a machine. It may be killed at any moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';

const [postgres, rescue, redisUrl, key, interval, leaseTime] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
  string,
];
const redis = new Redis(redisUrl);
const adapter = new PrismaPg({ connectionString: postgres, max: 3 });
const prisma = new PrismaClient({ adapter }).$extends(
  fencedLock({ redis, rescue: new PrismaPg({ connectionString: rescue }), defaults: { leaseTime: Number(leaseTime) } }),
);

async function once() {
  return await prisma.$oncePer(key, Number(interval), async (tx, lock) => {
    const worker = String(process.pid);
    await tx.ledger.create({ data: { key, token: lock.token, before: 0, after: 0, worker } });
    await sleep(Math.random() * 150);
    if (Math.random() < 0.2) throw new Error('no run');
  });
}

while (process.connected) {
  const result = await once().catch((error: { code?: string; message: string }) => {
    return { ran: false, failed: error.code ?? error.message };
  });
  if (process.connected) process.send?.({ type: 'told', ...result, value: undefined });
  await sleep(Math.random() * 60);
}
await prisma.$disconnect();
redis.disconnect();
