import type { Burst } from './burst.js';

/** Turns of all processes in the order in which they began. */
interface Turn {
  readonly process: number;
  readonly at: number;
}

export interface Fairness {
  /** The least that any process got of any window of turns while all of them had callers waiting; 1 is its fair share. */
  readonly leastShare: number;
  readonly windows: number;
  /** Longest run of turns of one process while others had callers waiting. */
  readonly longestRun: number;
  /** Share of turns within one process that began after one that was asked for later. */
  readonly outOfOrder: number;
}

export function fairness(bursts: readonly Burst[], size: number): Fairness {
  const turns: Turn[] = bursts
    .flatMap((burst, process) => burst.turns.map(({ at }) => ({ process, at })))
    .sort((a, b) => a.at - b.at);
  const contended = turns.slice(0, lastContended(turns, bursts.length));
  let leastShare = Number.NaN;
  const windows = Math.max(0, contended.length - size + 1);
  for (let start = 0; start < windows; start++) {
    for (let process = 0; process < bursts.length; process++) {
      const own = contended.slice(start, start + size).filter((turn) => turn.process === process).length;
      const share = (own * bursts.length) / size;
      if (!(share >= leastShare)) leastShare = share;
    }
  }
  return { leastShare, windows, longestRun: longestRun(contended), outOfOrder: outOfOrder(bursts) };
}

/** How many turns there were before some process had no caller left. */
function lastContended(turns: readonly Turn[], processes: number): number {
  const left = Array.from(
    { length: processes },
    (_, process) => turns.filter((turn) => turn.process === process).length,
  );
  for (const [index, { process }] of turns.entries()) {
    left[process] = (left[process] ?? 0) - 1;
    if (left[process] === 0) return index + 1;
  }
  return turns.length;
}

function longestRun(turns: readonly Turn[]): number {
  let longest = 0;
  let run = 0;
  for (const [index, { process }] of turns.entries()) {
    run = turns[index - 1]?.process === process ? run + 1 : 1;
    longest = Math.max(longest, run);
  }
  return longest;
}

function outOfOrder(bursts: readonly Burst[]): number {
  let late = 0;
  let all = 0;
  for (const { turns } of bursts) {
    let latest = -1;
    for (const { caller } of turns) {
      if (caller < latest) late++;
      latest = Math.max(latest, caller);
      all++;
    }
  }
  return late / all;
}
