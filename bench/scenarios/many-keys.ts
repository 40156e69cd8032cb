import type { Contestant } from '../contestants/contestant.js';
import { bareTransaction, queuedForUpdate, withLockAlone } from '../contestants/index.js';
import { rate } from '../measure/burst.js';
import { crowd } from '../measure/crowd.js';
import { inTurn } from '../measure/interleave.js';
import { seeded, zipf } from '../measure/random.js';
import { rounds } from '../measure/rounds.js';
import { spread, summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../stage.js';
import type { Run, Scenario } from './scenario.js';

const CALLERS = [1, 2, 4, 8, 10, 16, 32];

export const manyKeys: Scenario = {
  name: 'many-keys',
  about: '10,000 keys, some hot and most cold; throughput by callers; cost of a sale by the number of keys',
  run: async (stage, run) => [await zipfian(stage, run), await byCallers(stage, run), await byKeys(stage, run)],
};

async function zipfian(stage: Stage, run: Run): Promise<Table> {
  const [keys, count, callers] = [run.size(10_000, 200), run.size(400, 60), 64];
  const entries = [];
  for (const contestant of run.contestants) {
    const seller = await stage.house.seller(contestant);
    const tally = await Tally.of(stage, contestant, keys);
    // The same draws for all of them.
    entries.push({
      contestant,
      seller,
      tally,
      draw: zipf(keys, seeded(run.seed)),
      rates: [] as number[],
      times: [] as number[],
    });
  }
  for (const round of rounds(run.size(3, 1), 8_000)) {
    for (const { contestant, seller, tally, draw, rates, times } of inTurn(entries, round)) {
      run.step(`Zipf, round ${round + 1}, ${contestant.name}`);
      const sales = Array.from({ length: count }, () => tally.saleOf(draw()));
      const met = await crowd(seller, sales, callers);
      tally.add(met);
      rates.push(rate(met));
      times.push(...met.times);
    }
  }
  const rows = await Promise.all(
    entries.map(async ({ contestant, tally, rates, times }) => ({
      contestant: contestant.name,
      'sales/s': summary(rates).median,
      'middle half': spread(rates, 0),
      'median ms': summary(times).median,
      'p99 ms': summary(times).p99,
      ...(await tally.columns()),
    })),
  );
  return {
    title: `${callers} callers on ${keys.toLocaleString('en')} keys, drawn by Zipf's law`,
    rows,
    chart: { kind: 'bar', label: 'contestant', value: 'sales/s', logarithmic: true },
  };
}

/** Those whose curve is asked about, as far as they take part. */
function curves(run: Run): Contestant[] {
  return [bareTransaction, queuedForUpdate, withLockAlone].filter((one) => run.contestants.includes(one));
}

async function byCallers(stage: Stage, run: Run): Promise<Table> {
  const entries = [];
  for (const contestant of curves(run)) {
    const tally = await Tally.of(stage, contestant, 1_000);
    entries.push({ contestant, seller: await stage.house.seller(contestant), tally, next: 0 });
  }
  const rows = [];
  for (const callers of run.size(CALLERS, [1, 10])) {
    const rates = new Map<string, number[]>();
    for (const round of rounds(run.size(3, 1), 1_500)) {
      for (const entry of inTurn(entries, round)) {
        const { contestant, seller, tally } = entry;
        run.step(`${callers} callers, ${contestant.name}`);
        // One after the other, so that no two callers meet.
        const sales = Array.from({ length: run.size(200, 30) }, () => tally.saleOf(entry.next++ % 1_000));
        const met = await crowd(seller, sales, callers);
        tally.add(met);
        rates.set(contestant.name, [...(rates.get(contestant.name) ?? []), rate(met)]);
      }
    }
    for (const [contestant, own] of rates) rows.push({ contestant, callers, 'sales/s': summary(own).median });
  }
  const chart = { kind: 'line', label: 'callers', value: 'sales/s', series: 'contestant' } as const;
  return {
    title: 'Throughput by callers, each sale on a key of its own',
    note: 'The pool has 10 connections.',
    rows,
    chart,
  };
}

async function byKeys(stage: Stage, run: Run): Promise<Table> {
  const random = seeded(run.seed);
  const rows = [];
  for (const keys of run.size([100, 1_000, 10_000, 100_000], [100, 1_000])) {
    const entries = [];
    for (const contestant of curves(run)) {
      run.step(`${keys} keys, preparing ${contestant.name}`);
      const tally = await Tally.of(stage, contestant, keys);
      if (contestant === withLockAlone) await admitAll(stage, tally);
      entries.push({ contestant, seller: await stage.house.seller(contestant), tally, times: [] as number[] });
    }
    for (const round of rounds(run.size(8, 1), 2_500)) {
      for (const { contestant, seller, tally, times } of inTurn(entries, round)) {
        run.step(`${keys} keys, round ${round + 1}, ${contestant.name}`);
        const draw = () => tally.saleOf(Math.floor(random() * keys));
        const met = await crowd(seller, Array.from({ length: run.size(50, 10) }, draw), 1);
        tally.add(met);
        times.push(...met.times);
      }
    }
    for (const { contestant, times } of entries) {
      rows.push({
        contestant: contestant.name,
        keys,
        'median ms': summary(times).median,
        'middle half': spread(times, 3),
      });
    }
  }
  const chart = { kind: 'line', label: 'keys', value: 'median ms', series: 'contestant' } as const;
  return { title: 'One caller alone, by the number of keys that were locked before', rows, chart };
}

/** As if every key had been locked once. */
async function admitAll(stage: Stage, { ids }: Tally): Promise<void> {
  await stage.admin('plain').query(
    `SELECT count(fenced_lock.admit(jsonb_build_object('keys', keys, 'holders', holders,
       'attempt', gen_random_uuid(), 'leaseTime', 30000, 'workTime', 30000, 'waitTime', 10000)))
     FROM (SELECT jsonb_agg('stock:' || id) AS keys, jsonb_agg(gen_random_uuid()) AS holders
           FROM unnest($1::integer[]) WITH ORDINALITY AS t (id, place) GROUP BY place / 50) AS groups`,
    [ids],
  );
}
