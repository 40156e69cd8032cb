import type { Contestant } from '../contestants/contestant.js';
import { bareTransaction } from '../contestants/index.js';
import type { Table } from '../report/result.js';
import type { Run } from '../scenarios/scenario.js';
import { type Burst, rate } from './burst.js';
import { cpuTime } from './cpu.js';
import { inTurn } from './interleave.js';
import { rounds } from './rounds.js';
import { spread, summary } from './statistics.js';
import type { Tally } from './tally.js';

/** Bursts until what only they run is compiled. */
const WARM_UP = 10;
/** A contestant whose burst takes longer than this, and longer than `SLOW_SALE` for each of its sales, is not asked again; ms. */
const SLOW = 1_500;
/** Several times what a sale takes on a slow machine without a lock; ms. */
const SLOW_SALE = 10;

export interface Heat {
  readonly contestant: Contestant;
  readonly tally: Tally;
  /** Whether its callers are in this process, whose CPU is then theirs. */
  readonly isHere: boolean;
  /** One caller alone, back to back. */
  alone(): Promise<Burst>;
  /** All at once. */
  burst(): Promise<Pick<Burst, 'start' | 'end' | 'ok' | 'failed'>>;
}

interface Limits {
  readonly count: number;
  /** No round begins later; ms. */
  readonly budget: number;
}

interface Measured {
  readonly alone: number;
  readonly burst: number;
  /** Of one sale of the burst; ms. */
  readonly cpu: number;
}

/** Bursts of all contestants, round by round, each beside its own yardstick: one caller alone. */
export async function heats(title: string, run: Run, all: readonly Heat[], limits: Limits): Promise<Table> {
  const measured = new Map<Heat, Array<Measured | undefined>>(all.map((heat) => [heat, []]));
  const slow = new Set<Heat>();
  for (const _ of rounds(run.size(WARM_UP, 0), limits.budget / 2)) {
    for (const heat of all) {
      if (slow.has(heat)) continue;
      const burst = await heat.burst();
      heat.tally.add(burst);
      if (isSlow(burst)) slow.add(heat);
    }
  }
  for (const round of rounds(limits.count, limits.budget)) {
    for (const heat of inTurn(all, round)) {
      run.step(`${title}: round ${round + 1} of ${limits.count}, ${heat.contestant.name}`);
      if (slow.has(heat)) continue;
      const alone = await heat.alone();
      const before = cpuTime();
      const burst = await heat.burst();
      const cpu = (cpuTime() - before) / burst.ok;
      heat.tally.add(alone);
      heat.tally.add(burst);
      if (isSlow(burst)) slow.add(heat);
      (measured.get(heat) ?? [])[round] = { alone: rate(alone), burst: rate(burst), cpu };
    }
  }
  const bare = all.find(({ contestant }) => contestant.name === bareTransaction.name);
  const yardsticks = bare === undefined ? [] : (measured.get(bare) ?? []).map((one) => one?.alone);
  return {
    title,
    note: NOTE,
    rows: await Promise.all(all.map((heat) => row(heat, measured.get(heat) ?? [], yardsticks))),
    chart: { kind: 'bar', label: 'contestant', value: '× bare alone' },
  };
}

function isSlow({ start, end, ok, failed }: Pick<Burst, 'start' | 'end' | 'ok' | 'failed'>): boolean {
  const sales = Object.values(failed).reduce((sum, count) => sum + count, ok);
  return end - start > Math.max(SLOW, sales * SLOW_SALE);
}

const NOTE =
  'Alone: one caller making the same sales back to back, directly before. Ratios are medians over the rounds, each within ' +
  'its own round. A sale that failed counts for nothing, and the time that it took counts.';

async function row(
  { contestant, tally, isHere }: Heat,
  measured: ReadonlyArray<Measured | undefined>,
  yardsticks: Yardsticks,
) {
  const rates: number[] = [];
  const toOwn: number[] = [];
  const toBare: number[] = [];
  const cpus: number[] = [];
  // Not forEach: a slow one has holes.
  for (const [round, one] of measured.entries()) {
    if (one === undefined) continue;
    rates.push(one.burst);
    toOwn.push(one.burst / one.alone);
    toBare.push(one.burst / (yardsticks[round] ?? Number.NaN));
    cpus.push(one.cpu);
  }
  return {
    contestant: contestant.name,
    'sales/s': summary(rates).median,
    'middle half': spread(rates, 0),
    '× alone': summary(toOwn).median,
    '× bare alone': summary(toBare).median,
    ...(isHere ? { 'CPU a sale, ms': summary(cpus).median } : {}),
    rounds: rates.length,
    ...(await tally.columns()),
  };
}

type Yardsticks = ReadonlyArray<number | undefined>;
