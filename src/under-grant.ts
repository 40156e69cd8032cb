import { offAbort, onAbort } from './base/abort.js';
import type { Deadline } from './base/clock.js';
import type { Strike } from './base/strike.js';
import type { Admission } from './fence/admission.js';
import type { Call, Registered, Successor } from './fence/call.js';
import type { Database } from './fence/database.js';
import type { Entry } from './fence/entry.js';
import { fencedTransaction } from './fence/transaction.js';
import type { LeaseUser } from './lease/lease.js';
import type { ResolvedLockOptions } from './options.js';
import type { Parts } from './parts.js';

/** A transaction that a call wants, under what it was granted. */
export interface Wanted<Tx, R> {
  readonly database: Database<Tx>;
  readonly entry?: Entry<Tx> | undefined;
  readonly grant: Call<Tx, R>['grant'] & { attach(user: LeaseUser): () => void };
  readonly options: ResolvedLockOptions;
  /** When the wait time is over, in which the admission has to be had. */
  readonly deadline: Deadline;
  readonly registered?: Registered;
  /** Called when COMMIT is about to be sent: whose turn it is next. */
  readonly successor?: () => Successor | undefined;
  /** Called when COMMIT has been sent, and nobody's turn begins with it. */
  readonly committing?: () => void;
  /** Whether whoever is in the way is ended, of whichever waiting room. */
  readonly overrules?: boolean;
  /** Whether it goes on while the client is being closed. */
  readonly whileClosing?: boolean;
}

/** Runs it; the loss of a lease and the caller's signal strike it, and until it is admitted the end of the client. */
export async function underGrant<Tx, R>(
  { room, roomId, fencing, outage, emit }: Parts,
  wanted: Wanted<Tx, R>,
  strike: Strike,
  work: (tx: Tx, admission: Admission) => Promise<R>,
): Promise<R> {
  const { grant, options, deadline } = wanted;
  const { signal, waitTime, timeout, retries, maxWait, isolationLevel } = options;
  const aborted = signal && { handleEvent: () => strike.now(signal.reason) };
  if (aborted) onAbort(signal, aborted);
  if (signal?.aborted) aborted?.handleEvent();
  let beat = () => {};
  const detach = grant.attach({ lost: (loss) => strike.now(loss), beat: () => beat() });
  if (grant.loss) strike.now(grant.loss);
  const admitted = wanted.whileClosing ? () => {} : room.untilAdmitted(grant.key, (error) => strike.now(error));
  try {
    return await fencedTransaction<Tx, R>({
      database: wanted.database,
      entry: wanted.entry,
      fencing,
      outage,
      grant,
      room: wanted.overrules ? undefined : roomId,
      limits: { timeout, retries, maxWait, isolationLevel, wait: { deadline, waitTime } },
      strike,
      registered: wanted.registered,
      successor: wanted.successor,
      committing: wanted.committing,
      work(tx, admission) {
        admitted();
        return work(tx, admission);
      },
      onBeat(listener) {
        beat = listener;
      },
      emit,
    });
  } finally {
    admitted();
    if (aborted) offAbort(signal, aborted);
    detach();
  }
}
