import type { Deadline } from '../base/clock.js';

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
   * Whether the caller can do without a lease when the store cannot be asked. A single transaction can: Postgres
   * serializes it.
   */
  readonly mayShare: boolean;
  readonly preopen?: Preopen;
}
