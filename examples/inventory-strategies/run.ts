import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from '../../test/support/worker.js';
import type { Books } from './books.js';
import type { Command, Open, Report } from './messages.js';
import { type Entry, STRATEGIES } from './strategies/index.js';
import type { Outcome, Tally } from './tally.js';

/** Short, so that the comparison is; ms. */
const LEASE_TIME = 1_000;
/** Well past the lease, so that others may have the lock and sell; ms. */
const FROZEN_FOR = 3 * LEASE_TIME;
/** The first process that comes to the middle of this sale is the one that is frozen. */
const FROZEN_IN_SALE = 3;
/** The undisturbed run is longer by this factor, because it is the one that is timed. */
const LONGER = 4;
/** A frozen worker says nothing for a while, a broken one for ever; ms. */
const SILENT_AT_MOST = 60_000;

/** What all runs play on. */
export interface Scene {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly workers: readonly Worker[];
  readonly books: Books;
}

export interface Crowd {
  readonly units: number;
  readonly buyers: number;
}

/** Both runs of one strategy. */
export async function compare(scene: Scene, strategy: string, crowd: Crowd): Promise<Outcome> {
  const entry = STRATEGIES[strategy];
  if (entry === undefined) throw new Error(`There is no strategy '${strategy}'.`);
  const all = LONGER * crowd.units;
  const calm = await run(scene, strategy, entry, { units: all, buyers: all }, false);
  const frozen = await run(scene, strategy, entry, crowd, true);
  return { strategy, stockIn: entry.stockIn, calm, frozen };
}

/** All buyers at once, from all processes; the books afterwards. */
async function run(scene: Scene, strategy: string, entry: Entry, crowd: Crowd, freezes: boolean): Promise<Tally> {
  const { books, workers, databaseUrl, redisUrl } = scene;
  const { units, buyers } = crowd;
  const stockId = await books.newProduct(`${strategy} ${randomUUID()}`, units);
  const warmUpId = await books.newProduct(`warm-up ${randomUUID()}`, 1_000);
  const everybody = Array.from({ length: buyers }, (_, n) => `buyer ${n + 1}`);
  for (const [index, worker] of workers.entries()) {
    const open: Open = {
      type: 'open',
      strategy,
      site: { databaseUrl, redisUrl, leaseTime: LEASE_TIME },
      stockId,
      warmUpId,
      // Dealt out like cards.
      buyers: everybody.filter((_, n) => n % workers.length === index),
      waitsInSale: freezes ? FROZEN_IN_SALE : undefined,
    };
    worker.send(open);
  }
  await Promise.all(workers.map((worker) => nextReport(worker)));

  const watched = await watch(workers);
  return {
    units,
    buyers,
    sold: watched.soldAt.length,
    refused: watched.refused,
    orders: await books.orders(stockId),
    left: await books.left(stockId, entry.stockIn),
    seconds: ((watched.soldAt.at(-1) ?? watched.since) - watched.since) / 1_000,
    stoodStill: stoodStill(watched) / 1_000,
  };
}

interface Watched {
  readonly since: number;
  /** When each sale was reported. */
  readonly soldAt: readonly number[];
  readonly refused: number;
  readonly pause: Pause | undefined;
}

/** When a process was frozen and thawed, and whether the others had buyers left by then. */
interface Pause {
  readonly from: number;
  readonly to: number;
  readonly othersWait: boolean;
}

/** Lets all of them sell, freezes one if it says that it is in the middle, and listens until every buyer is served. */
async function watch(workers: readonly Worker[]): Promise<Watched> {
  const since = performance.now();
  const soldAt: number[] = [];
  const selling = new Set(workers);
  let refused = 0;
  let pause: Promise<Pause> | undefined;
  for (const worker of workers) command(worker, 'sell');
  await Promise.all(
    workers.map(async (worker) => {
      for (;;) {
        const { event } = await nextReport(worker);
        if (event === 'sold') soldAt.push(performance.now());
        else if (event === 'refused') refused++;
        else if (event === 'all served') {
          selling.delete(worker);
          return;
        } else if (event === 'in the middle') {
          if (pause === undefined) pause = freeze(worker, selling);
          else command(worker, 'go on');
        }
      }
    }),
  );
  return { since, soldAt, refused, pause: await pause };
}

/** The longest time in which nobody sold anything while a process was frozen and another one had buyers; ms. */
function stoodStill({ soldAt, pause }: Watched): number {
  if (pause === undefined) return 0;
  const { from, to, othersWait } = pause;
  const times = [from, ...soldAt.filter((at) => at > from && at < to)];
  if (othersWait) times.push(soldAt.find((at) => at >= to) ?? to);
  return Math.max(0, ...times.slice(1).map((at, index) => at - (times[index] as number)));
}

/** The process has read and not written yet. It stands still until after its lease. */
async function freeze(worker: Worker, selling: ReadonlySet<Worker>): Promise<Pause> {
  worker.freeze();
  const from = performance.now();
  await sleep(FROZEN_FOR);
  const pause = { from, to: performance.now(), othersWait: [...selling].some((other) => other !== worker) };
  command(worker, 'go on');
  worker.thaw();
  return pause;
}

async function nextReport(worker: Worker): Promise<Report> {
  const report = await worker.next<Report>('report', { within: SILENT_AT_MOST });
  if (report.event === 'failed') throw new Error(`A worker failed: ${report.detail}`);
  return report;
}

function command(worker: Worker, type: Command['type']): void {
  const message: Command = { type };
  worker.send(message);
}
