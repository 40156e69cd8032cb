import { now } from '../base/clock.js';
import { LockLostError, type LossReason } from '../base/errors.js';
import type { Claim } from './store.js';

/** A holder's right to a key, for a time. Held until `lose` is called or its time is over. */
export class Lease implements Claim {
  readonly key: string;
  readonly holder: string;
  readonly leaseTime: number;
  readonly #since: number;
  #expiresAt: number;
  #loss: LockLostError | undefined;
  readonly #onLoss: Array<(loss: LockLostError) => void> = [];

  /** `sentAt`: when the command that took it was sent. A lease counts from then, never from the reply. */
  constructor(claim: Claim, sentAt: number) {
    this.key = claim.key;
    this.holder = claim.holder;
    this.leaseTime = claim.leaseTime;
    this.#since = sentAt;
    this.#expiresAt = sentAt + claim.leaseTime;
  }

  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** For how long it has been held; milliseconds. */
  get age(): number {
    return now() - this.#since;
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
    for (const listener of this.#onLoss) listener(this.#loss);
  }

  onLoss(listener: (loss: LockLostError) => void): void {
    this.#onLoss.push(listener);
  }
}
