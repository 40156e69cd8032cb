import type { KeyState } from './store.js';

/** Votes as they come in, one of each node, in the nodes' order. */
export class Ballot<Vote> {
  /** `undefined` while it is awaited. */
  readonly cast: (Vote | undefined)[];
  readonly #votes: readonly Promise<Vote>[];
  #left: number;

  constructor(votes: readonly Promise<Vote>[]) {
    this.#votes = votes;
    this.#left = votes.length;
    this.cast = votes.map(() => undefined);
    this.each((vote, node) => {
      this.cast[node] = vote;
      this.#left--;
    });
  }

  /** How many are awaited. */
  get left(): number {
    return this.#left;
  }

  count(counts: (vote: Vote) => boolean): number {
    return this.cast.filter((vote) => vote !== undefined && counts(vote)).length;
  }

  /** Calls the listener with every vote, once it is cast. */
  each(listener: (vote: Vote, node: number) => void): void {
    this.#votes.forEach((vote, node) => void vote.then((cast) => listener(cast, node)));
  }

  /** Resolves as soon as those that are cast are enough, or all are. */
  until(enough: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.#left === 0 || enough()) resolve();
      };
      look();
      this.each(look);
    });
  }
}

/** What most of the nodes say of a key: who has it, and for how long that one still has so many of them. */
export function stateOf(key: string, states: readonly KeyState[], majority: number): KeyState {
  const times = timesOf(states);
  const [holder, left] = [...times].find(([, { length }]) => length >= majority) ?? [];
  const expiresIn = left?.toSorted((a, b) => b - a)[majority - 1] ?? 0;
  return { key, holder, expiresIn, waiting: Math.max(0, ...states.map(({ waiting }) => waiting)) };
}

/** Whether so many nodes that have not answered yet can change nothing about who has the key. */
export function isClear(states: readonly KeyState[], left: number, majority: number): boolean {
  const most = Math.max(0, ...[...timesOf(states).values()].map(({ length }) => length));
  return most >= majority || most + left < majority;
}

function timesOf(states: readonly KeyState[]): Map<string, number[]> {
  const times = new Map<string, number[]>();
  for (const { holder, expiresIn } of states) {
    if (holder !== undefined) times.set(holder, [...(times.get(holder) ?? []), expiresIn]);
  }
  return times;
}
