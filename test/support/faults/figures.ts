import { check, progressTimes, type Violation } from './check.js';
import type { History } from './history.js';

/** What a history comes to, in numbers. */
export interface Figures {
  readonly operations: number;
  readonly committed: number;
  /** What of it was committed, by the way that was taken. */
  readonly ways: Readonly<Record<string, number>>;
  /** How often callers were told each thing: ok, or the code of an error. */
  readonly told: Readonly<Record<string, number>>;
  readonly unknown: { readonly committed: number; readonly rolledBack: number };
  /** Cut off with their process. */
  readonly untold: { readonly committed: number; readonly rolledBack: number };
  readonly strikes: Readonly<Record<string, number>>;
  readonly missed: number;
  readonly events: Readonly<Record<string, number>>;
  /** The longest call, from question to answer; milliseconds. */
  readonly longestCall: number;
  /** The longest that a caller took to get something done after the faults had stopped; milliseconds. */
  readonly longestStall: number;
  readonly violations: readonly Violation[];
}

export function figuresOf(history: History): Figures {
  const { operations, entries, strikes, calms, events } = history;
  const present = new Set(entries.map(({ operation }) => operation));
  const split = (of: typeof operations) => {
    const committed = of.filter(({ id }) => present.has(id)).length;
    return { committed, rolledBack: of.length - committed };
  };
  return {
    operations: operations.length,
    committed: present.size,
    ways: count(operations.filter(({ id }) => present.has(id)).map(({ way }) => way)),
    told: count(operations.flatMap(({ told }) => (told ? [told.code ?? told.outcome] : []))),
    unknown: split(operations.filter(({ told }) => told?.outcome === 'unknown')),
    untold: split(operations.filter(({ told }) => told === undefined)),
    strikes: count(strikes.filter(({ missed }) => !missed).map(({ fault }) => fault)),
    missed: strikes.filter(({ missed }) => missed).length,
    events,
    longestCall: Math.max(0, ...operations.map(({ told, askedAt }) => (told ? told.at - askedAt : 0))),
    longestStall: Math.max(0, ...calms.flatMap((calm) => progressTimes(calm, operations))),
    violations: check(history),
  };
}

/** Those of both: counts add up, and of what is the longest, the longer one counts. */
export function add(a: Figures, b: Figures): Figures {
  return {
    ...(sum(a, b) as Figures),
    longestCall: Math.max(a.longestCall, b.longestCall),
    longestStall: Math.max(a.longestStall, b.longestStall),
    violations: [...a.violations, ...b.violations],
  };
}

function sum(a: object, b: object): object {
  const sums: Record<string, unknown> = { ...a };
  for (const [name, more] of Object.entries(b) as [string, unknown][]) {
    const known = sums[name] ?? (typeof more === 'number' ? 0 : {});
    sums[name] = typeof more === 'number' ? (known as number) + more : sum(known as object, more as object);
  }
  return sums;
}

function count(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
