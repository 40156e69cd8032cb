import { offAbort, onAbort } from './base/abort.js';
import type { Deadline } from './base/clock.js';
import type { Strike } from './base/strike.js';
import type { Admission } from './fence/admission.js';
import type { Call, Registered } from './fence/call.js';
import type { Database, Opening } from './fence/database.js';
import { fencedTransaction } from './fence/transaction.js';
import type { LeaseUser } from './lease/lease.js';
import type { ResolvedLockOptions } from './options.js';
import type { Parts } from './parts.js';

/** A transaction that a call wants, under what it was granted. */
export interface Wanted<Tx, R> {
  readonly database: Database<Tx>;
  readonly opening?: Opening<Tx> | undefined;
  readonly grant: Call<Tx, R>['grant'] & { attach(user: LeaseUser): () => void };
  readonly options: ResolvedLockOptions;
  /** When the wait time is over, in which the admission has to be had. */
  readonly deadline: Deadline;
  readonly registered?: Registered;
  readonly onCommit?: (admission: Admission) => void;
}

/** Runs it; the loss of a lease and the caller's signal strike it. */
export async function underGrant<Tx, R>(
  { fencing, emit }: Parts,
  wanted: Wanted<Tx, R>,
  strike: Strike,
  work: (tx: Tx, admission: Admission) => Promise<R>,
): Promise<R> {
  const { grant, options, deadline, opening, ...rest } = wanted;
  const { signal, waitTime } = options;
  const aborted = { handleEvent: () => strike.now(signal?.reason) };
  onAbort(signal, aborted);
  if (signal?.aborted) aborted.handleEvent();
  let beat = () => {};
  const detach = grant.attach({ lost: (loss) => strike.now(loss), beat: () => beat() });
  if (grant.loss) strike.now(grant.loss);
  const onBeat = (listener: () => void) => {
    beat = listener;
  };
  const limits = { ...options, wait: { deadline, waitTime } };
  try {
    return await fencedTransaction<Tx, R>({ ...rest, opening, grant, fencing, limits, strike, work, onBeat, emit });
  } finally {
    offAbort(signal, aborted);
    detach();
  }
}
