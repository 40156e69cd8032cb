import { bareTransaction } from '../contestants/index.js';
import { interleave } from '../measure/interleave.js';
import { spread, summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../stage.js';
import type { Run, Scenario } from './scenario.js';

const KEYS = 16;

export const overhead: Scenario = {
  name: 'overhead',
  about: 'what a lock costs where nobody contends: one caller alone, and 16 callers with a key each',
  async run(stage, run) {
    return [
      await measure(stage, run, 1, { count: run.size(500, 15), warmUp: run.size(50, 3), budget: 12_000 }),
      await measure(stage, run, KEYS, { count: run.size(40, 3), warmUp: run.size(4, 1), budget: 8_000 }),
    ];
  },
};

async function measure(
  stage: Stage,
  run: Run,
  keys: number,
  limits: { readonly count: number; readonly warmUp: number; readonly budget: number },
): Promise<Table> {
  const contestants: Record<string, () => Promise<unknown>> = {};
  const tallies = new Map<string, Tally>();
  for (const contestant of run.contestants) {
    const seller = await stage.house.seller(contestant);
    const tally = await Tally.of(stage, contestant, keys);
    const sales = tally.ids.map((_, index) => tally.saleOf(index));
    tallies.set(contestant.name, tally);
    contestants[contestant.name] = async () => {
      await Promise.all(sales.map((sale) => seller.sell(sale)));
      tally.add({ ok: sales.length, failed: {} });
    };
  }
  const onRound = (round: number) => run.step(`${keys} at a time, round ${round}`);
  const times = await interleave(contestants, { ...limits, onRound });
  const bare = summary(times[bareTransaction.name] ?? []).median;
  const rows = [];
  for (const [name, own] of Object.entries(times)) {
    const { median, p99 } = summary(own);
    rows.push({
      contestant: name,
      'median ms': median,
      'middle half': spread(own, 3),
      'p99 ms': p99,
      'ratio to bare': median / bare,
      rounds: own.length,
      ...(await tallies.get(name)?.columns()),
    });
  }
  return {
    title: keys === 1 ? 'One caller alone' : `${keys} callers, each with a key of its own (one round of all)`,
    rows,
    chart: { kind: 'bar', label: 'contestant', value: 'ratio to bare' },
  };
}
