// Callers of permits in a process of its own, each of which asks Postgres how many are at work.
import { PrismaPg } from '@prisma/adapter-pg';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { connectTo, type RedisSite } from '../support/redis-site.js';

const [postgres, site, key, permits, mark] = process.argv.slice(2) as [string, string, string, string, string];
const { redis, close } = connectTo(JSON.parse(site) as RedisSite);
const adapter = new PrismaPg({ connectionString: postgres });
const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis, defaults: { leaseTime: 600 } }));
let goesOn = true;
process.on('message', (message: { type: string }) => {
  if (message.type === 'end') goesOn = false;
});

/** Resolves to how many transactions of these callers are at work, by the locks that Postgres has of them. */
async function work(tx: Pick<typeof prisma, '$queryRawUnsafe'>): Promise<number> {
  await tx.$queryRawUnsafe(`SELECT 1 FROM (SELECT pg_advisory_xact_lock_shared(7, ${mark})) AS l`);
  const [row] = await tx.$queryRawUnsafe<{ count: number }[]>(
    `SELECT count(*)::int AS count FROM pg_locks, pg_sleep(0.01 * random())
     WHERE locktype = 'advisory' AND classid = 7 AND objid = ${mark} AND granted`,
  );
  return row?.count ?? 0;
}

const codes: Record<string, number> = {};
let most = 0;
async function caller(): Promise<void> {
  while (goesOn) {
    try {
      const count = await prisma.$withPermit(key, { permits: Number(permits) }, (tx) => work(tx));
      most = Math.max(most, count);
      codes['committed'] = (codes['committed'] ?? 0) + 1;
      process.send?.({ type: 'turn' });
    } catch (error) {
      const { code = String(error) } = error as { code?: string };
      codes[code] = (codes[code] ?? 0) + 1;
    }
  }
}
process.send?.({ type: 'ready' });
await Promise.all(Array.from({ length: 4 }, caller));
process.send?.({ type: 'told', most, codes });
await prisma.$disconnect();
close();
process.disconnect();
