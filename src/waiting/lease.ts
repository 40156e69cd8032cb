import { now } from '../base/clock.js';
import { LockLostError, type LossReason } from '../base/errors.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { LockVia } from '../base/messages.js';
import type { LeaseRequest } from './request.js';
import type { Claim } from './store.js';

/** Callbacks for work under a lease. */
export interface LeaseUser {
  /** Called once, when the lease is lost. */
  lost(loss: LockLostError): void;
  /** Called at each renewal, whatever its outcome. */
  beat?(): void;
}

/** A holder's right to a key, for a time. It is held until `lose` is called or its time is over. */
export class Lease implements Claim {
  readonly key: string;
  readonly holder: string;
  readonly leaseTime: number;
  /**
   * Whether another caller may hold the key, too: the store could not be asked, and only Postgres serializes the
   * transactions.
   */
  readonly shared: boolean;
  /** Whether other processes wait for the key, according to the last answer of the store. True if unknown. */
  contended = true;
  /** Whether another process may take it over by its holder id, and this one not know yet. It must not pass to another caller. */
  mayMove = false;
  /** Whether another process had the key when this one first asked for it. */
  wasElsewhere = false;
  /** When it expires, if it is not renewed. */
  expiresAt: number;
  /** `undefined` for an offer, until it is extended. */
  #since: number | undefined;
  #loss: LockLostError | undefined;
  #hasEnded = false;
  readonly #users = new Set<LeaseUser>();

  /**
   * @param sentAt when the command that took the lease was sent. The lease time counts from then, not from the reply.
   */
  constructor(claim: Claim, sentAt: number, shared = false) {
    this.key = claim.key;
    this.holder = claim.holder;
    this.leaseTime = claim.leaseTime;
    this.shared = shared;
    this.#since = sentAt;
    this.expiresAt = sentAt + claim.leaseTime;
  }

  /**
   * An offer, as this process has read of it: a lease of `time` milliseconds, which a renewal extends at once. The message may
   * be old, so it says nothing about how long the key has had no other holder.
   */
  static offered(claim: Claim, time: number): Lease {
    const lease = new Lease(claim, now());
    lease.#since = undefined;
    lease.expiresAt = Math.min(lease.expiresAt, now() + time);
    return lease;
  }

  /** Whether it is an offer that has not been extended yet. */
  get isOffer(): boolean {
    return this.#since === undefined;
  }

  /** Milliseconds until the lease expires, if it is not renewed. */
  get remaining(): number {
    return this.loss ? 0 : Math.max(0, this.expiresAt - now());
  }

  /** For how long no other caller can have held the key; milliseconds. */
  get age(): number {
    return this.shared || this.#since === undefined ? Number.POSITIVE_INFINITY : now() - this.#since;
  }

  /** Why the lease was lost; `undefined` while it is held. */
  get loss(): LockLostError | undefined {
    this.checkExpiry();
    return this.#loss;
  }

  /**
   * Marks the lease as lost if its time is over. A timer does that, too, but after a pause of the process replies may be
   * handled before overdue timers.
   */
  checkExpiry(): void {
    if (this.#loss === undefined && now() >= this.expiresAt) this.lose('expired');
  }

  /** Whether it is of no use any more: lost, released or yielded. */
  get isOver(): boolean {
    return this.#hasEnded || this.loss !== undefined;
  }

  /** Called when no turn uses it any more. It cannot be lost then. */
  end(): void {
    this.#hasEnded = true;
  }

  extended(sentAt: number): void {
    this.#since ??= sentAt;
    this.expiresAt = sentAt + this.leaseTime;
  }

  /** A lost lease stays lost: it is never silently taken again. */
  lose(reason: LossReason, cause?: unknown): void {
    if (this.#loss || this.#hasEnded) return;
    this.#loss = new LockLostError(this.key, reason, cause);
    for (const user of this.#users) user.lost(this.#loss);
  }

  beat(): void {
    for (const user of this.#users) user.beat?.();
  }

  attach(user: LeaseUser): void {
    this.#users.add(user);
  }

  detach(user: LeaseUser): void {
    this.#users.delete(user);
  }
}

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
  /** Called when its work may run again, because its COMMIT was refused. Until it ends, no turn behind it passes the key on. */
  runsAgain(): void;
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
    if (this.#turns.some((turn) => !turn.alone())) return Number.POSITIVE_INFINITY;
    const ages = this.#turns.map(({ lease }) => lease.age);
    return ages.includes(Number.POSITIVE_INFINITY) ? Number.POSITIVE_INFINITY : Math.min(...ages);
  }

  /** Why a lease was lost; `undefined` while all are held. */
  get loss(): LockLostError | undefined {
    for (const { lease } of this.#turns) if (lease.loss) return lease.loss;
    return undefined;
  }

  /** Marks the leases as lost whose time is over. */
  checkExpiry(): void {
    for (const { lease } of this.#turns) lease.checkExpiry();
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

  /** Called when the work may run again, because its COMMIT was refused. */
  runsAgain(): void {
    for (const turn of this.#turns) turn.runsAgain();
  }

  /** Called when another process may take the leases over by their holder ids, or from them. */
  show(): void {
    for (const { lease } of this.#turns) lease.mayMove = true;
  }

  /** Releases all leases. Idempotent; never throws. */
  release(): void {
    for (const turn of this.#turns) turn.end();
  }
}

/** Where the call waits for the leases of its other keys. */
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
  return keys.length === 1 ? new LeaseSet([first]) : withEach(first, room, keys, request);
}

/** If a lease is lost while the others are waited for, the waiting ends. */
async function withEach(first: Turn, room: Room, keys: readonly string[], request: LeaseRequest): Promise<LeaseSet> {
  const turns = [first];
  // Not AbortSignal.any(): the caller's signal, which may live as long as the process, would keep a reference to each
  // result.
  const abort = new LazyAbort();
  const { signal } = abort;
  const user = { lost: (loss: LockLostError) => abort.abort(loss) };
  const { options, deadline, mayShare, preopen } = request;
  const unfollow = abort.follow(options.signal);
  const others = { options: { ...options, signal }, deadline, mayShare, ...(preopen && { preopen }) };
  first.lease.attach(user);
  try {
    if (first.lease.loss) throw first.lease.loss;
    for (const key of keys.slice(1)) {
      const turn = await room.enter(key, others);
      turns.push(turn);
      turn.lease.attach(user);
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
