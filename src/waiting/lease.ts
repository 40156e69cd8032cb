import { now } from '../base/clock.js';
import { LockLostError, type LossReason } from '../base/errors.js';
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
  /** Whether it is renewed. Only then is it as good for the next caller as for the last. */
  readonly renew: boolean;
  /**
   * Whether another caller may hold the key, too: the store could not be asked, and only Postgres serializes the
   * transactions.
   */
  readonly shared: boolean;
  /** Whether another process is likely to want the key: it waited for it, or had it when this one first asked for it. */
  readonly isWanted: boolean;
  #mayMove = false;
  /** When it expires, if it is not renewed. */
  expiresAt: number;
  /** `undefined` for an offer, until it is extended. */
  #since: number | undefined;
  #loss: LockLostError | undefined;
  #hasEnded = false;
  readonly #users = new Set<LeaseUser>();

  /**
   * @param sentAt when the command that took the lease was sent. The lease time counts from then, not from the reply.
   * @param offeredFor for how long it is only an offer, as this process has read of it, which a renewal extends at once;
   *   milliseconds. The message may be old, so it says nothing about how long the key has had no other holder.
   */
  constructor(
    claim: Claim,
    sentAt: number,
    { renew = true, shared = false, isWanted = true, offeredFor = Number.POSITIVE_INFINITY } = {},
  ) {
    this.key = claim.key;
    this.holder = claim.holder;
    this.leaseTime = claim.leaseTime;
    this.renew = renew;
    this.shared = shared;
    this.isWanted = isWanted;
    this.#since = Number.isFinite(offeredFor) ? undefined : sentAt;
    this.expiresAt = sentAt + Math.min(claim.leaseTime, offeredFor);
  }

  /** Whether it is an offer that has not been extended yet. */
  get isOffer(): boolean {
    return this.#since === undefined;
  }

  /** Whether another process may take it over by its holder id, and this one not know yet. It must not pass to another caller. */
  get mayMove(): boolean {
    return this.#mayMove;
  }

  /** Called when another process may know its holder id. */
  show(): void {
    this.#mayMove = true;
  }

  /** Milliseconds until the lease expires, if it is not renewed. */
  get remaining(): number {
    return this.loss ? 0 : Math.max(0, this.expiresAt - now());
  }

  /** For how long no other caller can have held the key; milliseconds. */
  get age(): number {
    return this.shared || this.#since === undefined ? Number.POSITIVE_INFINITY : now() - this.#since;
  }

  /**
   * Why the lease was lost; `undefined` while it is held. Its time may be over before a timer says so: after a pause of the
   * process, replies may be handled before overdue timers.
   */
  get loss(): LockLostError | undefined {
    if (this.#loss === undefined && now() >= this.expiresAt) this.lose('expired');
    return this.#loss;
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
