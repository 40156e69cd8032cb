import { now } from '../base/clock.js';
import { LockLostError, type LossReason } from '../base/errors.js';
import type { Claim } from './store.js';

/** Who works under a lease, and hears of what becomes of it. */
export interface LeaseUser {
  /** Called once, when it is lost. */
  lost(loss: LockLostError): void;
  /** Called at each renewal, whatever its outcome. */
  beat(): void;
}

/** A holder's right to a key, for a time. Held until `lose` is called or its time is over. */
export class Lease implements Claim {
  readonly key: string;
  readonly holder: string;
  readonly leaseTime: number;
  /** Whether others may have the key too: the store could not be asked, and Postgres alone keeps order. */
  readonly shared: boolean;
  /** Whether other processes are known to wait for the key, or may; as far as was told last. */
  contended = true;
  /** Whether another process had the key when this one first asked for it. */
  waitedFor = false;
  readonly #since: number;
  #expiresAt: number;
  #loss: LockLostError | undefined;
  #users: readonly LeaseUser[] = [];

  /** `sentAt`: when the command that took it was sent. A lease counts from then, never from the reply. */
  constructor(claim: Claim, sentAt: number, shared = false) {
    this.key = claim.key;
    this.holder = claim.holder;
    this.leaseTime = claim.leaseTime;
    this.shared = shared;
    this.#since = sentAt;
    this.#expiresAt = sentAt + claim.leaseTime;
  }

  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** Milliseconds for which it still stands, renewals aside. */
  get remaining(): number {
    return this.loss ? 0 : Math.max(0, this.#expiresAt - now());
  }

  /** For how long nobody else can have had it; milliseconds. */
  get age(): number {
    return this.shared ? Number.POSITIVE_INFINITY : now() - this.#since;
  }

  /** Why the lease is lost, or `undefined` while it is held. */
  get loss(): LockLostError | undefined {
    // Read off the clock, not off a timer: after a stop of the process replies can come before overdue timers.
    if (this.#loss === undefined && now() >= this.#expiresAt) this.lose('expired');
    return this.#loss;
  }

  extended(sentAt: number): void {
    this.#expiresAt = sentAt + this.leaseTime;
  }

  /** What is lost stays lost: it is never silently taken again. */
  lose(reason: LossReason, cause?: unknown): void {
    if (this.#loss) return;
    this.#loss = new LockLostError(this.key, reason, cause);
    for (const user of this.#users) user.lost(this.#loss);
  }

  beat(): void {
    for (const user of this.#users) user.beat();
  }

  /** Returns the function that ends it. */
  attach(user: LeaseUser): () => void {
    this.#users = [...this.#users, user];
    return () => {
      this.#users = this.#users.filter((other) => other !== user);
    };
  }
}
