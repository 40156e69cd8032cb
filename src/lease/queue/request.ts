import type { Deadline } from '../../base/clock.js';

/** When a transaction may begin ahead: beside the caller's own look, or beside the COMMIT of another process. */
export type PreopenMoment = 'look' | 'commit';

/** Begins a caller's transaction before the caller has the lease. Neither method throws; both are idempotent. */
export interface Preopen {
  open(beside: PreopenMoment): void;
  /** Called when the caller has to wait: a waiting caller must not hold a connection. */
  discard(): void;
  /**
   * When the hint came by which the transaction was begun beside another process's COMMIT; `undefined` if there was none,
   * or until Postgres has admitted it.
   */
  readonly hintedAt?: number | undefined;
  /**
   * Settles with the answer to the admission of that transaction. `undefined` if it is not known to come soon: nothing was
   * sent, it was answered already, or there are several keys.
   */
  readonly admitting?: Promise<unknown> | undefined;
}

/** What a caller asks for. */
export interface LeaseRequest {
  readonly leaseTime: number;
  readonly renew: boolean;
  /** When the wait time is over. */
  readonly deadline: Deadline;
  /** The wait time as the caller gave it, for messages; milliseconds. */
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
  /**
   * Whether the caller can do without a lease when the store cannot be asked. A single transaction can: Postgres
   * serializes it.
   */
  readonly mayShare: boolean;
  readonly preopen?: Preopen;
}
