import type { Contestant } from '../contestants/contestant.js';
import { withLockAlone } from '../contestants/index.js';
import type { Table } from '../report/result.js';
import type { Run } from '../scenarios/scenario.js';
import { type Burst, rate } from './burst.js';
import { inTurn } from './interleave.js';
import { rounds } from './rounds.js';
import { spread, summary } from './statistics.js';
import type { Tally } from './tally.js';

/** Whose burst took longer is not asked again; ms. */
const SLOW = 1_500;

export interface Heat {
  readonly contestant: Contestant;
  readonly tally: Tally;
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
}

/** Bursts of all contestants, round by round, each beside its own yardstick: one caller alone. */
export async function heats(title: string, run: Run, all: readonly Heat[], limits: Limits): Promise<Table> {
  const measured = new Map<Heat, Array<Measured | undefined>>(all.map((heat) => [heat, []]));
  const slow = new Set<Heat>();
  for (const round of rounds(limits.count, limits.budget)) {
    for (const heat of inTurn(all, round)) {
      run.step(`${title}: round ${round + 1} of ${limits.count}, ${heat.contestant.name}`);
      if (slow.has(heat)) continue;
      const alone = await heat.alone();
      const burst = await heat.burst();
      heat.tally.add(alone);
      heat.tally.add(burst);
      if (burst.end - burst.start > SLOW) slow.add(heat);
      (measured.get(heat) ?? [])[round] = { alone: rate(alone), burst: rate(burst) };
    }
  }
  const ours = all.find(({ contestant }) => contestant.name === withLockAlone.name);
  const yardsticks = ours === undefined ? [] : (measured.get(ours) ?? []).map((one) => one?.alone);
  return {
    title,
    note: NOTE,
    rows: await Promise.all(all.map((heat) => row(heat, measured.get(heat) ?? [], yardsticks))),
    chart: { kind: 'bar', label: 'contestant', value: 'sales/s', logarithmic: true },
  };
}

const NOTE =
  'Alone: one caller making the same sales back to back, directly before. Ratios are medians over the rounds, each within ' +
  'its own round. A sale that failed counts for nothing, and the time that it took counts.';

async function row({ contestant, tally }: Heat, measured: ReadonlyArray<Measured | undefined>, yardsticks: Yardsticks) {
  const rates: number[] = [];
  const toOwn: number[] = [];
  const toOurs: number[] = [];
  // Not forEach: a slow one has holes.
  for (const [round, one] of measured.entries()) {
    if (one === undefined) continue;
    rates.push(one.burst);
    toOwn.push(one.burst / one.alone);
    toOurs.push(one.burst / (yardsticks[round] ?? Number.NaN));
  }
  return {
    contestant: contestant.name,
    'sales/s': summary(rates).median,
    'middle half': spread(rates, 0),
    '× alone': summary(toOwn).median,
    '× $withLock alone': summary(toOurs).median,
    rounds: rates.length,
    ...(await tally.columns()),
  };
}

type Yardsticks = ReadonlyArray<number | undefined>;
