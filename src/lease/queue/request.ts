import type { Deadline } from '../../base/clock.js';
import type { Former } from '../store.js';

/** What a transaction may begin beside: the caller's own look, or the COMMIT of a holder in another process. */
export type PreopenMoment = 'look' | Former;

/** Begins a caller's transaction before the caller has the lease. Neither method throws; both are idempotent. */
export interface Preopen {
  open(beside: PreopenMoment): void;
  /** Called when the caller has to wait: a waiting caller must not hold a connection. */
  discard(): void;
  /**
   * The holder beside whose COMMIT the transaction was begun, once Postgres has admitted it right behind that holder: the
   * COMMIT is done, and nobody had the key in between. `undefined` until then.
   */
  readonly former?: string | undefined;
  /** Settles with the answer to the admission of a transaction that was begun beside a COMMIT; `undefined` if none was. */
  readonly admitting?: Promise<unknown> | undefined;
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
   * Whether the caller can do without a lease when the store cannot be asked. A single transaction can: Postgres
   * serializes it.
   */
  readonly mayShare: boolean;
  readonly preopen?: Preopen;
}
