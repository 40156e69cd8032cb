import { asError } from '../base/errors.js';
import type { KeyState } from '../waiting/store.js';

/** How many nodes make a majority: more than half of all, whether they answer or not. */
export function majorityOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/** One vote of each node, in the order of the nodes. A node that fails has voted, too: its error. */
export class Ballot<Answer extends object | boolean> {
  readonly majority: number;
  /** `undefined` while the vote is awaited. */
  readonly cast: (Answer | Error | undefined)[];
  readonly #votes: readonly Promise<void>[];

  constructor(votes: readonly Promise<Answer>[]) {
    this.majority = majorityOf(votes.length);
    this.cast = votes.map(() => undefined);
    this.#votes = votes.map(async (vote, node) => {
      this.cast[node] = await vote.catch(asError);
    });
  }

  get answers(): Answer[] {
    return this.cast.filter((vote): vote is Answer => vote !== undefined && !(vote instanceof Error));
  }

  /** The number of votes that are awaited. */
  get left(): number {
    return this.cast.filter((vote) => vote === undefined).length;
  }

  /** Whether a majority has answered. */
  get isKnown(): boolean {
    return this.answers.length >= this.majority;
  }

  isMajority(counts: (answer: Answer) => boolean): boolean {
    return this.answers.filter(counts).length >= this.majority;
  }

  /** Resolves when `enough` is true, or when all votes are cast. */
  until(enough: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.left === 0 || enough()) resolve();
      };
      look();
      for (const vote of this.#votes) void vote.then(look);
    });
  }

  /** Whether a majority has answered, and the nodes that have not cannot change who has the key. */
  isClear(states: readonly KeyState[]): boolean {
    const most = Math.max(0, ...[...timesOf(states).values()].map(({ length }) => length));
    return this.isKnown && (most >= this.majority || most + this.left < this.majority);
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

function timesOf(states: readonly KeyState[]): Map<string, number[]> {
  const times = new Map<string, number[]>();
  for (const { holder, expiresIn } of states) {
    if (holder !== undefined) times.set(holder, [...(times.get(holder) ?? []), expiresIn]);
  }
  return times;
}
