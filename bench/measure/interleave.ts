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
 * of them alike. The order changes from round to round: each follows each. Returns all times, in ms.
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

/** All of them, beginning with another one each round. */
export function inTurn<T>(all: readonly T[], round: number): T[] {
  return all.map((_, place) => all[(place + round) % all.length] as T);
}
