import type { LockLostError } from '../base/errors.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { LockVia } from '../base/messages.js';
import type { Lease, LeaseUser } from './lease.js';
import type { LeaseRequest } from './request.js';

/** The time for which a caller has the key. */
export interface Turn {
  readonly lease: Lease;
  /** How the caller came by the lease. */
  readonly via: LockVia;
  /**
   * Passes the key to the next caller of this process, if the lease suits it and `take` accepts. `take` returns what
   * the next turn begins with.
   */
  pass<T>(take: (next: LeaseRequest, lease: Lease) => T | undefined): T | undefined;
  /** Called before COMMIT is sent: tells the next process, which opens its transaction. */
  hint(): void;
  /** Whether no other turn uses this lease. The previous turn may still wait for its COMMIT. */
  alone(): boolean;
  /** Asks the store now, and marks a missing lease as lost. Resolves to whether it is gone. */
  look(): Promise<boolean>;
  /** Ends the turn: the lease passes to the next caller, or is released. Idempotent; never throws. */
  end(): void;
}

/**
 * The leases of one call, one for each key. All calls take their keys in the same sorted order, which rules out
 * deadlocks.
 */
export class LeaseSet {
  readonly keys: readonly string[];
  /** The first key. Messages name it. */
  readonly key: string;
  readonly #turns: readonly Turn[];

  constructor(turns: readonly Turn[]) {
    this.#turns = turns;
    this.keys = Object.freeze(turns.map(({ lease }) => lease.key));
    this.key = this.keys[0] as string;
  }

  get holders(): readonly string[] {
    return this.#turns.map(({ lease }) => lease.holder);
  }

  /** How the call came by each. */
  get via(): readonly LockVia[] {
    return this.#turns.map(({ via }) => via);
  }

  get leaseTime(): number {
    return Math.min(...this.#turns.map(({ lease }) => lease.leaseTime));
  }

  /** Milliseconds until the first of the leases expires, if none is renewed. */
  get remaining(): number {
    return Math.min(...this.#turns.map(({ lease }) => lease.remaining));
  }

  /**
   * Whether another caller may hold some of these keys, too: the store could not be asked, and only Postgres serializes
   * the transactions.
   */
  get shared(): boolean {
    return this.#turns.some(({ lease }) => lease.shared);
  }

  /** For how long no other caller can have held any of the keys; milliseconds. */
  get age(): number {
    // The previous turn of this process may still wait for its COMMIT. Its transaction has the same right to the key,
    // so it must not be ended as a blocker.
    const ages = this.#turns.map((turn) => (turn.alone() ? turn.lease.age : Number.POSITIVE_INFINITY));
    return ages.every(Number.isFinite) ? Math.min(...ages) : Number.POSITIVE_INFINITY;
  }

  /** Why a lease was lost; `undefined` while all are held. */
  get loss(): LockLostError | undefined {
    for (const { lease } of this.#turns) if (lease.loss) return lease.loss;
    return undefined;
  }

  /** Marks the lease as lost whose time is over. */
  checkExpiry(): void {
    void this.loss;
  }

  attach(user: LeaseUser): void {
    for (const { lease } of this.#turns) lease.attach(user);
  }

  detach(user: LeaseUser): void {
    for (const { lease } of this.#turns) lease.detach(user);
  }

  /** Asks the store now, and marks missing leases as lost. Resolves to whether all of them are gone. */
  async look(): Promise<boolean> {
    const gone = await Promise.all(this.#turns.map((turn) => turn.look()));
    return gone.every((each) => each);
  }

  /** Marks the leases as lost, because Postgres has admitted another holder. */
  lose(cause: unknown): void {
    for (const { lease } of this.#turns) lease.lose('gone', cause);
  }

  /** Passes a single key to the next caller of this process. Several keys are not passed on together. */
  pass<T>(take: (next: LeaseRequest, lease: Lease) => T | undefined): T | undefined {
    return this.#turns.length === 1 ? this.#turns[0]?.pass(take) : undefined;
  }

  /**
   * Called before COMMIT is sent. With several keys there is no hint: the next process may wait for another key
   * first.
   */
  hint(): void {
    if (this.#turns.length === 1) this.#turns[0]?.hint();
  }

  /** Called when another process may take the leases over by their holder ids, or from them. */
  show(): void {
    for (const { lease } of this.#turns) lease.show();
  }

  /** Releases all leases. Idempotent; never throws. */
  release(): void {
    for (const turn of this.#turns) turn.end();
  }
}

/** Where a call waits for the leases of its other keys. */
interface Room {
  enter(key: string, request: LeaseRequest): Promise<Turn>;
}

/** Takes a lease of all other keys, or of none. `first` is the turn of the first key. */
export function withOthers(
  first: Turn,
  room: Room,
  keys: readonly string[],
  request: LeaseRequest,
): LeaseSet | Promise<LeaseSet> {
  return keys.length === 1 ? new LeaseSet([first]) : withEach(first, room, keys.slice(1), request);
}

/** If a lease is lost while the others are waited for, the waiting ends. */
async function withEach(first: Turn, room: Room, others: readonly string[], request: LeaseRequest): Promise<LeaseSet> {
  const turns = [first];
  // Not AbortSignal.any(): the caller's signal, which may live as long as the process, would keep a reference to each result.
  const abort = new LazyAbort();
  const unfollow = abort.follow(request.options.signal);
  const user = { lost: (loss: LockLostError) => abort.abort(loss) };
  const { deadline, mayShare, preopen } = request;
  const options = { ...request.options, signal: abort.signal };
  try {
    for (const key of others) {
      const { lease } = turns.at(-1) as Turn;
      lease.attach(user);
      if (lease.loss) throw lease.loss;
      turns.push(await room.enter(key, { options, deadline, mayShare, ...(preopen && { preopen }) }));
    }
    return new LeaseSet(turns);
  } catch (error) {
    for (const turn of turns) turn.end();
    throw error;
  } finally {
    unfollow();
    for (const { lease } of turns) lease.detach(user);
  }
}
