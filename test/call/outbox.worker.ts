// A process whose work commits or not, with a hook that writes to an outbox past the transaction, and that runs a job once
// in each second, as cron would start it. It may be killed.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import pg from 'pg';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';

const [postgres, direct, redisUrl, job, ...keys] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  ...string[],
];
const redis = new Redis(redisUrl);
const adapter = new PrismaPg({ connectionString: postgres, max: 8 });
const prisma = new PrismaClient({ adapter }).$extends(
  fencedLock({ redis, rescue: new PrismaPg({ connectionString: direct }), defaults: { leaseTime: 500 } }),
);
const outbox = new pg.Pool({ connectionString: direct, max: 4 });
outbox.on('error', () => {});

/** Until it is written, once for each time that a hook has run. */
async function note(id: string, hook: string): Promise<void> {
  const run = randomUUID();
  const sql = 'INSERT INTO outbox (run, id, hook) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING';
  for (;;) {
    try {
      await outbox.query(sql, [run, id, hook]);
      return;
    } catch {
      await sleep(50);
    }
  }
}

async function operation(): Promise<void> {
  const id = randomUUID();
  const key = keys[Math.floor(Math.random() * keys.length)] as string;
  const fate = Math.random();
  const told = await prisma
    .$withLock(key, async (tx, lock) => {
      lock.afterCommit(() => note(id, 'afterCommit'));
      lock.onUnknown(() => note(id, 'onUnknown'));
      lock.afterRollback(() => note(id, 'afterRollback'));
      await tx.$executeRaw`INSERT INTO work (id, refuse) VALUES (${id}::uuid, ${fate < 0.1})`;
      if (fate > 0.9) throw new Error('no work');
    })
    .then(
      () => 'ok',
      (error: { code?: string }) => (error.code === 'COMMIT_UNKNOWN' ? 'unknown' : 'error'),
    );
  process.send?.({ type: 'told', id, told });
}

async function run(): Promise<void> {
  const once = prisma.$oncePer(job, 1_000, async (tx, { token }) => {
    await tx.ledger.create({ data: { key: job, token, before: 0, after: 0, worker: String(process.pid) } });
    await sleep(Math.random() * 150);
    if (Math.random() < 0.2) throw new Error('no run');
  });
  await once.catch(() => {});
  await sleep(Math.random() * 60);
}

let working = true;
process.once('message', () => {
  working = false;
});
await Promise.all(
  [run, ...Array.from({ length: 5 }, () => operation)].map(async (next) => {
    while (working) await next();
  }),
);
process.send?.({ type: 'done' });
await prisma.$disconnect();
await outbox.end();
redis.disconnect();
process.disconnect();
