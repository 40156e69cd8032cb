import type { KeyState } from './store.js';

/** Resolves to whether so many of the votes come to be counted, as soon as that is certain. */
export function reached<Vote>(
  votes: readonly Promise<Vote>[],
  count: number,
  counts: (vote: Vote) => boolean,
): Promise<boolean> {
  return new Promise((resolve) => {
    let [wanting, left] = [count, votes.length];
    for (const vote of votes) {
      void vote.then((cast) => {
        left--;
        if (counts(cast)) wanting--;
        if (wanting === 0) resolve(true);
        else if (left === 0) resolve(false);
      });
    }
  });
}

/** What most of the nodes say of a key: who has it, and for how long that one still has so many of them. */
export function stateOf(key: string, states: readonly KeyState[], majority: number): KeyState {
  const times = new Map<string, number[]>();
  for (const { holder, expiresIn } of states) {
    if (holder !== undefined) times.set(holder, [...(times.get(holder) ?? []), expiresIn]);
  }
  const [holder, left] = [...times].find(([, { length }]) => length >= majority) ?? [];
  const expiresIn = left?.toSorted((a, b) => b - a)[majority - 1] ?? 0;
  return { key, holder, expiresIn, waiting: Math.max(0, ...states.map(({ waiting }) => waiting)) };
}
