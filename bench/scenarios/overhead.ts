import { FACES } from '../contestants/faces.js';
import { bareTransaction, withLockAlone } from '../contestants/index.js';
import { simpleRedisMutex } from '../contestants/simple-redis-mutex.js';
import type { House } from '../house.js';
import { cpuTime } from '../measure/cpu.js';
import { farAway } from '../measure/far-away.js';
import { interleave } from '../measure/interleave.js';
import { spread, summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import { warmUp } from '../measure/warm-up.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../servers.js';
import type { Run, Scenario } from './scenario.js';

const KEYS = 16;

export const overhead: Scenario = {
  name: 'overhead',
  about: 'what a lock costs where nobody contends: one caller alone, and 16 callers with a key each',
  async run(stage, run) {
    const alone = { count: run.size(500, 15), warmUp: run.size(50, 3), budget: 12_000 };
    const several = { count: run.size(40, 3), warmUp: run.size(4, 1), budget: 8_000 };
    return [
      await measure('One caller alone', stage.house, stage, run, 1, alone),
      await measure(
        `${KEYS} callers, each with a key of its own (one round of all)`,
        stage.house,
        stage,
        run,
        KEYS,
        several,
      ),
    ];
  },
};

export const overheadDistant: Scenario = {
  name: 'overhead-distant',
  about: 'the same for one caller alone, with PostgreSQL and Redis a network away',
  run: (stage, run) =>
    farAway(stage, async (house, roundTrip) => {
      const limits = { count: run.size(300, 5), warmUp: run.size(30, 1), budget: 30_000 };
      return [await measure(`One caller alone, ${roundTrip} ms from the servers`, house, stage, run, 1, limits)];
    }),
};

/**
 * Each database library's lock against the same library's own transaction. Near the servers the ratio of a fast library is high: the lock
 * takes the same milliseconds everywhere.
 */
export const overheadFaces: Scenario = {
  name: 'overhead-faces',
  about:
    "one caller alone through pg, Kysely and Drizzle: each library's lock against its own transaction, near and away",
  async run(stage, run) {
    const near = { count: run.size(400, 5), warmUp: run.size(40, 1), budget: 8_000 };
    const tables = await ofFaces('One caller alone', stage.house, stage, run, near);
    const away = { count: run.size(200, 3), warmUp: run.size(20, 1), budget: 20_000 };
    const distant = await farAway(stage, (house, roundTrip) =>
      ofFaces(`One caller alone, ${roundTrip} ms from the servers`, house, stage, run, away),
    );
    return [...tables, ...distant];
  },
};

async function ofFaces(title: string, house: House, stage: Stage, run: Run, limits: Limits): Promise<Table[]> {
  const tables: Table[] = [];
  for (const contestants of [[bareTransaction, withLockAlone, simpleRedisMutex], ...FACES] as const) {
    tables.push(await measure(title, house, stage, { ...run, contestants }, 1, limits));
  }
  return tables;
}

interface Limits {
  readonly count: number;
  readonly warmUp: number;
  readonly budget: number;
}

async function measure(
  title: string,
  house: House,
  stage: Stage,
  run: Run,
  keys: number,
  limits: Limits,
): Promise<Table> {
  const contestants: Record<string, () => Promise<unknown>> = {};
  const tallies = new Map<string, Tally>();
  const spent = new Map<string, number[]>();
  for (const contestant of run.contestants) {
    const seller = await house.seller(contestant);
    const tally = await Tally.of(stage, contestant, keys);
    const sales = tally.ids.map((_, index) => tally.saleOf(index));
    run.step(`${title}: ${contestant.name} warms up`);
    tally.add({ ok: await warmUp(seller, tally.sale, run.warmUp), failed: {} });
    const times: number[] = [];
    tallies.set(contestant.name, tally);
    spent.set(contestant.name, times);
    contestants[contestant.name] = async () => {
      const before = cpuTime();
      await Promise.all(sales.map((sale) => seller.sell(sale)));
      times.push((cpuTime() - before) / keys);
      tally.add({ ok: sales.length, failed: {} });
    };
  }
  const onRound = (round: number) => run.step(`${title}: round ${round}`);
  const times = await interleave(contestants, { ...limits, onRound });
  // Where the contestants were chosen without it, the first one.
  const against = times[bareTransaction.name] === undefined ? run.contestants[0]?.name : bareTransaction.name;
  const bare = summary(times[against ?? ''] ?? []).median;
  const cpuOf = (name: string) => summary((spent.get(name) ?? []).slice(limits.warmUp)).median;
  const rows = [];
  for (const [name, own] of Object.entries(times)) {
    const { median, p99 } = summary(own);
    rows.push({
      contestant: name,
      'median ms': median,
      'middle half': spread(own, 3),
      'p99 ms': p99,
      'ratio to bare': median / bare,
      'ms above bare': median - bare,
      'CPU a sale, ms': cpuOf(name),
      'CPU, ratio to bare': cpuOf(name) / cpuOf(against ?? ''),
      rounds: own.length,
      ...(await tallies.get(name)?.columns()),
    });
  }
  return { title, rows, chart: { kind: 'bar', label: 'contestant', value: 'ratio to bare' } };
}
