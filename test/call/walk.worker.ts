// Makes calls that nobody contends for, and sends which files of src/ had a function that ran during one of them.
import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { fencedLock } from '../../src/index.js';
import { PrismaClient as FenceClient } from '../generated/fence/client.js';
import { PrismaClient as ShopClient } from '../generated/prisma/client.js';

const [kind, postgres, redisUrl, id] = process.argv.slice(2) as [string, string, string, string];
const redis = new Redis(redisUrl);
const adapter = new PrismaPg({ connectionString: postgres });
const call = kind === 'guarded' ? guarded() : unguarded();

// Prepared statements, the list of guards and the pool's connection are there after the first calls.
for (let warm = 0; warm < 3; warm++) {
  await call();
  await pause();
}
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
// A call that is slow, on a machine with other load, passes more files: the transaction that was begun ahead is given up.
let shortest: string[] | undefined;
for (let walk = 0; walk < 10; walk++) {
  await session.post('Profiler.takePreciseCoverage');
  await call();
  await pause();
  const files = filesIn((await session.post('Profiler.takePreciseCoverage')).result);
  if (shortest === undefined || files.length < shortest.length) shortest = files;
}
process.send?.({ type: 'walk', files: shortest }, () => process.exit(0));

function guarded() {
  const prisma = new FenceClient({ adapter }).$extends(fencedLock({ redis }));
  const where = { id: Number(id) };
  return () => prisma.$withLock(`walk:${id}`, (tx) => tx.member.update({ where, data: { value: { increment: 1 } } }));
}

function unguarded() {
  const prisma = new ShopClient({ adapter }).$extends(fencedLock({ redis }));
  const where = { id: Number(id) };
  return () => prisma.$withLock(`walk:${id}`, (tx) => tx.stock.update({ where, data: { quantity: { decrement: 1 } } }));
}

/** Longer than a key counts as released just now: a call that follows the last one at once has its lease yet. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}

/** The files of src/ with a function that has run. */
function filesIn(scripts: readonly Profiler.ScriptCoverage[]): string[] {
  const hasRun = ({ functions }: Profiler.ScriptCoverage) => functions.some(({ ranges: [whole] }) => whole?.count);
  const local = scripts.filter(({ url }) => url.startsWith('file:')).filter(hasRun);
  return local.map(({ url }) => relative(process.cwd(), fileURLToPath(url))).filter((file) => file.startsWith('src/'));
}
