import { median, quantile } from 'simple-statistics';

export interface Timing {
  readonly median: number;
  readonly p99: number;
}

/**
 * Times the contestants one after the other, round by round, so that whatever else the machine does falls on all
 * of them alike. The order changes from round to round: each follows each.
 */
export async function interleave(
  contestants: Readonly<Record<string, () => Promise<unknown>>>,
  { rounds = 1_500, warmUp = 200 } = {},
): Promise<Record<string, Timing>> {
  const names = Object.keys(contestants);
  const times = new Map(names.map((name) => [name, [] as number[]]));
  for (let round = -warmUp; round < rounds; round++) {
    for (let place = 0; place < names.length; place++) {
      const name = names[(place + round + warmUp) % names.length] as string;
      const start = performance.now();
      await contestants[name]?.();
      if (round >= 0) times.get(name)?.push(performance.now() - start);
    }
  }
  return Object.fromEntries(
    names.map((name) => {
      const own = times.get(name) ?? [];
      return [name, { median: median(own), p99: quantile(own, 0.99) }];
    }),
  );
}
