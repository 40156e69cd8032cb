// One of two processes that take overlapping sets of keys in orders of their own, and write all of their rows.
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';

/** Products by their keys, and the sets to take, one after the other in each of several loops at once. */
export interface Errands {
  readonly ids: Readonly<Record<string, number>>;
  readonly loops: readonly (readonly (readonly string[])[])[];
}

const [postgres, redisUrl] = process.argv.slice(2) as [string, string];
const redis = new Redis(redisUrl);
const adapter = new PrismaPg({ connectionString: postgres });
const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));

const told = new Promise<Errands>((resolve) => {
  process.once('message', ({ errands }: { errands: Errands }) => resolve(errands));
});
process.send?.({ type: 'ready' });
const { ids, loops } = await told;

let done = 0;
const failures: string[] = [];
const run = async (keys: readonly string[]) => {
  try {
    await prisma.$withLock(keys, async (tx) => {
      for (const key of keys) {
        const where = { id: ids[key] as number };
        const { quantity } = await tx.stock.findUniqueOrThrow({ where });
        await tx.stock.update({ where, data: { quantity: quantity - 1 } });
      }
    });
    done++;
  } catch (error) {
    failures.push(String(error));
  }
};
await Promise.all(
  loops.map(async (sets) => {
    for (const keys of sets) await run(keys);
  }),
);
process.send?.({ type: 'end', done, failures });
await prisma.$disconnect();
redis.disconnect();
process.disconnect();
