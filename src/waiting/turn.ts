import type { Deadline } from '../base/clock.js';
import type { LockLostError } from '../base/errors.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { LockVia } from '../base/messages.js';
import type { Lease, LeaseUser } from './lease.js';

/** What a transaction may begin beside: the caller's own look, or the COMMIT of a holder in another process. */
export type PreopenMoment = 'look' | 'commit';

/** Begins a caller's transaction before the caller has the lease. No method throws; all are idempotent. */
export interface Preopen {
  open(beside: PreopenMoment): void;
  /** Called when the caller has to wait: it must not hold a connection, but for the milliseconds of the COMMIT before it. */
  wait(): void;
  discard(): void;
  /** Whether Postgres has admitted a transaction that was begun beside a COMMIT: that COMMIT is done, or was refused. */
  readonly isAdmitted?: boolean;
}

/** The options of a call that are about its lease. */
export interface LeaseOptions {
  readonly leaseTime: number;
  readonly renew: boolean;
  /** The wait time as the caller gave it, for messages; milliseconds. */
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
}

/** What a caller asks for. */
export interface LeaseRequest {
  readonly options: LeaseOptions;
  /** When the wait time is over. */
  readonly deadline: Deadline;
  /**
   * Of a call with a single transaction; `undefined` for a handle. Such a call can do without a lease when the store cannot be
   * asked: Postgres serializes it. Outside of its transactions, only the lease keeps others away from a handle.
   */
  readonly preopen: Preopen | undefined;
}

/** What a caller does in its turn. An object and not a closure, because there is one for every waiting caller. */
export interface TurnUser<R> {
  /** Called once, in the caller's async context. */
  useTurn(turn: Turn): Promise<R>;
}

/** The queue of a key, as its turns see it. */
interface TurnQueue {
  /** Whether one turn uses its lease. Otherwise the previous one still waits for its COMMIT. */
  readonly hasOneTurn: boolean;
  pass<T>(lease: Lease, take: (next: LeaseRequest, lease: Lease) => T | undefined): T | undefined;
  hint(lease: Lease): void;
  look(lease: Lease): Promise<boolean>;
  ended(lease: Lease): void;
}

/** What a turn has of one key. */
interface Hold {
  readonly lease: Lease;
  /** How the caller came by the lease. */
  readonly via: LockVia;
  readonly queue: TurnQueue;
}

/**
 * The time for which a caller has its keys, each under a lease. All calls take their keys in the same sorted order, which
 * rules out deadlocks.
 */
export class Turn {
  readonly keys: readonly string[];
  readonly #holds: readonly Hold[];
  #hasPassed = false;
  #hasEnded = false;

  constructor(holds: readonly Hold[]) {
    this.#holds = holds;
    this.keys = Object.freeze(holds.map(({ lease }) => lease.key));
  }

  /** The turn that these are together, in their place. */
  static of(turns: readonly Turn[]): Turn {
    return new Turn(turns.flatMap((turn) => turn.#holds));
  }

  /** The first key. Messages name it. */
  get key(): string {
    return this.lease.key;
  }

  /** Of the first key. */
  get lease(): Lease {
    return (this.#holds[0] as Hold).lease;
  }

  get holders(): readonly string[] {
    return this.#holds.map(({ lease }) => lease.holder);
  }

  /** How the caller came by each. */
  get via(): readonly LockVia[] {
    return this.#holds.map(({ via }) => via);
  }

  get leaseTime(): number {
    return Math.min(...this.#holds.map(({ lease }) => lease.leaseTime));
  }

  /** Milliseconds until the first of the leases expires, if none is renewed. */
  get remaining(): number {
    return Math.min(...this.#holds.map(({ lease }) => lease.remaining));
  }

  /**
   * Whether another caller may hold some of these keys, too: the store could not be asked, and only Postgres serializes
   * the transactions.
   */
  get shared(): boolean {
    return this.#holds.some(({ lease }) => lease.shared);
  }

  /** For how long no other caller can have held any of the keys; milliseconds. */
  get age(): number {
    // The previous turn of this process may still wait for its COMMIT. Its transaction has the same right to the key,
    // so it must not be ended as a blocker.
    const ages = this.#holds.map(({ lease, queue }) => (queue.hasOneTurn ? lease.age : Number.POSITIVE_INFINITY));
    return ages.every(Number.isFinite) ? Math.min(...ages) : Number.POSITIVE_INFINITY;
  }

  /** Why a lease was lost; `undefined` while all are held. To read it is to compare the time, as for `Lease.loss`. */
  get loss(): LockLostError | undefined {
    for (const { lease } of this.#holds) if (lease.loss) return lease.loss;
    return undefined;
  }

  attach(user: LeaseUser): void {
    for (const { lease } of this.#holds) lease.attach(user);
  }

  detach(user: LeaseUser): void {
    for (const { lease } of this.#holds) lease.detach(user);
  }

  /** Asks the store now, and marks missing leases as lost. Resolves to whether all of them are gone. */
  async look(): Promise<boolean> {
    const gone = await Promise.all(this.#holds.map(({ lease, queue }) => queue.look(lease)));
    return gone.every((each) => each);
  }

  /** Marks the leases as lost, because Postgres has admitted another holder. */
  lose(cause: unknown): void {
    for (const { lease } of this.#holds) lease.lose('gone', cause);
  }

  /** Called when another process may take the leases over by their holder ids, or from them. */
  show(): void {
    for (const { lease } of this.#holds) lease.show();
  }

  /**
   * Passes the key to the next caller of this process, if the lease suits it and `take` accepts. `take` returns what the next
   * turn begins with. Several keys are not passed on together.
   */
  pass<T>(take: (next: LeaseRequest, lease: Lease) => T | undefined): T | undefined {
    const [hold, another] = this.#holds;
    if (hold === undefined || another !== undefined || this.#hasPassed) return undefined;
    const taken = hold.queue.pass(hold.lease, take);
    this.#hasPassed = taken !== undefined;
    return taken;
  }

  /**
   * Called before COMMIT is sent: tells the next process, which opens its transaction. With several keys there is no hint:
   * the next process may wait for another key first.
   */
  hint(): void {
    const [hold, another] = this.#holds;
    if (another === undefined && !this.#hasPassed) hold?.queue.hint(hold.lease);
  }

  /** Ends the turn: each lease passes to the next caller, or is released. Idempotent; never throws. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const { lease, queue } of this.#holds) queue.ended(lease);
  }
}

/** Where a call waits for the leases of its other keys. */
interface Room {
  enter(key: string, request: LeaseRequest): Promise<Turn>;
}

/** Takes all other keys, or gives back the first, whose turn is `first`. If a lease is lost meanwhile, the waiting ends. */
export async function withOthers(
  first: Turn,
  room: Room,
  keys: readonly string[],
  request: LeaseRequest,
): Promise<Turn> {
  const turns = [first];
  // Not AbortSignal.any(): the caller's signal, which may live as long as the process, would keep a reference to each result.
  const abort = new LazyAbort();
  const unfollow = abort.follow(request.options.signal);
  const user = { lost: (loss: LockLostError) => abort.abort(loss) };
  const { deadline, preopen } = request;
  const options = { ...request.options, signal: abort.signal };
  try {
    for (const key of keys.slice(1)) {
      const { lease } = turns.at(-1) as Turn;
      lease.attach(user);
      if (lease.loss) throw lease.loss;
      turns.push(await room.enter(key, { options, deadline, preopen }));
    }
    return Turn.of(turns);
  } catch (error) {
    for (const turn of turns) turn.end();
    throw error;
  } finally {
    unfollow();
    for (const { lease } of turns) lease.detach(user);
  }
}
