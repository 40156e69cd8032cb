import { now } from '../base/clock.js';
import { LockLostError, type LossReason } from '../base/errors.js';
import type { Claim } from './store.js';

/** Callbacks for work under a lease. */
export interface LeaseUser {
  /** Called once, when the lease is lost. */
  lost(loss: LockLostError): void;
  /** Called at each renewal, whatever its outcome. */
  beat(): void;
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
  /** Whether another process had the key when this one first asked for it. */
  waitedFor = false;
  readonly #since: number;
  #expiresAt: number;
  #loss: LockLostError | undefined;
  #users: readonly LeaseUser[] = [];

  /**
   * @param sentAt when the command that took the lease was sent. The lease time counts from then, not from the reply.
   * @param time how long the store keeps it from then, if it is not extended; milliseconds.
   */
  constructor(claim: Claim, sentAt: number, shared = false, time = claim.leaseTime) {
    this.key = claim.key;
    this.holder = claim.holder;
    this.leaseTime = claim.leaseTime;
    this.shared = shared;
    this.#since = sentAt;
    this.#expiresAt = sentAt + time;
  }

  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** Milliseconds until the lease expires, if it is not renewed. */
  get remaining(): number {
    return this.loss ? 0 : Math.max(0, this.#expiresAt - now());
  }

  /** For how long no other caller can have held the key; milliseconds. */
  get age(): number {
    return this.shared ? Number.POSITIVE_INFINITY : now() - this.#since;
  }

  /** Why the lease was lost; `undefined` while it is held. */
  get loss(): LockLostError | undefined {
    // Read the clock here and do not rely on a timer: after a pause of the process, replies may be handled before
    // overdue timers.
    if (this.#loss === undefined && now() >= this.#expiresAt) this.lose('expired');
    return this.#loss;
  }

  extended(sentAt: number): void {
    this.#expiresAt = sentAt + this.leaseTime;
  }

  /** A lost lease stays lost: it is never silently taken again. */
  lose(reason: LossReason, cause?: unknown): void {
    if (this.#loss) return;
    this.#loss = new LockLostError(this.key, reason, cause);
    for (const user of this.#users) user.lost(this.#loss);
  }

  beat(): void {
    for (const user of this.#users) user.beat();
  }

  /** Adds a user of the lease. Returns the function that removes it. */
  attach(user: LeaseUser): () => void {
    this.#users = [...this.#users, user];
    return () => {
      this.#users = this.#users.filter((other) => other !== user);
    };
  }
}
