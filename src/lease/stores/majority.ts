import type { KeyState } from '../store.js';

/**
 * How many nodes have a vote. One that is dead keeps nothing for anybody; but once no more than half of all are alive, the
 * dead count too: they will come back, and know of nothing.
 */
function votersOf(nodes: number, dead: number): number {
  const alive = nodes - dead;
  return alive >= moreThanHalf(nodes) ? alive : nodes;
}

/** How many of the nodes are enough. */
export function majorityOf(nodes: number, dead: number): number {
  return moreThanHalf(votersOf(nodes, dead));
}

function moreThanHalf(count: number): number {
  return Math.floor(count / 2) + 1;
}

/** Votes as they come in, one of each node, in the nodes' order. */
export class Ballot<Vote> {
  /** `undefined` while it is awaited. */
  readonly cast: (Vote | undefined)[];
  readonly majority: number;
  readonly #votes: readonly Promise<Vote>[];
  readonly #voters: number;
  #left: number;

  /** `dead`: of how many it is known beforehand. */
  constructor(votes: readonly Promise<Vote>[], dead: number) {
    this.#votes = votes;
    this.#voters = votersOf(votes.length, dead);
    this.majority = majorityOf(votes.length, dead);
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

  isMajority(counts: (vote: Vote) => boolean): boolean {
    return this.count(counts) >= this.majority;
  }

  /** Whether so many have said no that nobody can have a majority any more. */
  isOut(no: (vote: Vote) => boolean): boolean {
    return this.#voters - this.count(no) < this.majority;
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
  const problem = states.find((state) => state.problem !== undefined)?.problem;
  const process = states.find((state) => state.holder === holder && state.process !== undefined)?.process;
  const waiting = Math.max(0, ...states.map((state) => state.waiting));
  return {
    key,
    holder,
    expiresIn,
    waiting,
    ...(holder !== undefined && process !== undefined && { process }),
    ...(problem !== undefined && { problem }),
  };
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
