import { rounds } from './rounds.js';

interface Limits {
  readonly count: number;
  readonly warmUp: number;
  /** No round begins later; ms. */
  readonly budget: number;
  onRound(round: number): void;
}

/**
 * Times the contestants one after the other, round by round, so that whatever else the machine does falls on all
 * of them alike. Returns all times, in ms.
 */
export async function interleave(
  contestants: Readonly<Record<string, () => Promise<unknown>>>,
  { count, warmUp, budget, onRound }: Limits,
): Promise<Record<string, number[]>> {
  const names = Object.keys(contestants);
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]]));
  const play = async (round: number, keep: boolean) => {
    onRound(round);
    for (const name of inTurn(names, round)) {
      const start = performance.now();
      await contestants[name]?.();
      if (keep) times[name]?.push(performance.now() - start);
    }
  };
  for (const round of rounds(warmUp, budget / 4)) await play(round, false);
  for (const round of rounds(count, budget)) await play(round, true);
  return times;
}

/**
 * All of them, in the order of a round. Within as many rounds as there are contestants each follows each other one equally
 * often (twice as many rounds for an odd number): what a contestant still does behind its answer falls on all alike.
 * E. J. Williams, Experimental designs balanced for the estimation of residual effects of treatments, 1949.
 */
export function inTurn<T>(all: readonly T[], round: number): T[] {
  const count = all.length;
  const order = all.map((_, step) => {
    const place = step % 2 === 1 ? (step + 1) / 2 : count - step / 2;
    return all[(place + round) % count] as T;
  });
  return Math.floor(round / count) % 2 === 1 ? order.reverse() : order;
}
