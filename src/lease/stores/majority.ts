import type { KeyState } from '../store.js';

/**
 * How many nodes count. A dead node has lost its leases, so it does not count. But once no more than half of all nodes
 * are alive, the dead ones count again: they may come back without their leases.
 */
function votersOf(nodes: number, dead: number): number {
  const alive = nodes - dead;
  return alive >= moreThanHalf(nodes) ? alive : nodes;
}

/** How many nodes make a majority. */
export function majorityOf(nodes: number, dead: number): number {
  return moreThanHalf(votersOf(nodes, dead));
}

function moreThanHalf(count: number): number {
  return Math.floor(count / 2) + 1;
}

/** The answers of all nodes, one vote for each, in the order of the nodes. */
export class Ballot<Vote> {
  /** `undefined` while the vote is awaited. */
  readonly cast: (Vote | undefined)[];
  readonly majority: number;
  readonly #votes: readonly Promise<Vote>[];
  readonly #voters: number;
  #left: number;

  /** @param dead how many nodes are known to be dead. */
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

  /** The number of votes that are awaited. */
  get left(): number {
    return this.#left;
  }

  count(counts: (vote: Vote) => boolean): number {
    return this.cast.filter((vote) => vote !== undefined && counts(vote)).length;
  }

  isMajority(counts: (vote: Vote) => boolean): boolean {
    return this.count(counts) >= this.majority;
  }

  /** Whether so many nodes have voted no that no majority is possible any more. */
  isOut(no: (vote: Vote) => boolean): boolean {
    return this.#voters - this.count(no) < this.majority;
  }

  /** Calls the listener with every vote when it is cast. */
  each(listener: (vote: Vote, node: number) => void): void {
    this.#votes.forEach((vote, node) => void vote.then((cast) => listener(cast, node)));
  }

  /** Resolves when `enough` is true, or when all votes are cast. */
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

/**
 * The state of a key by majority: the holder that most nodes name, and for how long most of them still will. `waiters` are
 * those of the node with the longest queue, because nodes share no order.
 */
export function stateOf(key: string, states: readonly KeyState[], majority: number): KeyState {
  const times = timesOf(states);
  const [holder, left] = [...times].find(([, { length }]) => length >= majority) ?? [];
  const expiresIn = left?.toSorted((a, b) => b - a)[majority - 1] ?? 0;
  const problem = states.find((state) => state.problem !== undefined)?.problem;
  const process = states.find((state) => state.holder === holder && state.process !== undefined)?.process;
  const [longest] = states.toSorted((one, other) => other.waiting - one.waiting);
  const { waiting = 0, waiters } = longest ?? {};
  return {
    key,
    holder,
    expiresIn,
    waiting,
    ...(waiters !== undefined && { waiters }),
    ...(holder !== undefined && process !== undefined && { process }),
    ...(problem !== undefined && { problem }),
  };
}

/** Whether the nodes that have not answered yet cannot change who holds the key. */
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
