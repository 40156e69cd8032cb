import type { Deadline } from '../../base/clock.js';

/** What a turn may begin beside: its own look, or the COMMIT of the process before it. */
export type PreopenMoment = 'look' | 'commit';

/** What a turn begins with, before it is known to be one. Neither throws; both idempotent. */
export interface Preopen {
  open(beside: PreopenMoment): void;
  /** It will not be its turn at once: nothing is kept while it waits. */
  discard(): void;
}

/** What a caller asks for. */
export interface LeaseRequest {
  readonly leaseTime: number;
  readonly renew: boolean;
  /** When its wait time is over. */
  readonly deadline: Deadline;
  /** The wait time as the caller gave it, for messages. */
  readonly waitTime: number;
  readonly signal: AbortSignal | undefined;
  /** Whether Postgres alone may keep order for it, as it can for one transaction. */
  readonly mayShare: boolean;
  readonly preopen?: Preopen;
}
