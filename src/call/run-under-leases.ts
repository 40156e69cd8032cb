import { offAbort, onAbort } from '../base/abort-listeners.js';
import type { Deadline } from '../base/clock.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import type { Database } from '../database/database.js';
import type { LeaseUser } from '../lease/lease.js';
import type { ResolvedLockOptions } from '../options/options.js';
import type { Call, Outcome, Registered, Successor } from '../transaction/call.js';
import type { Entry } from '../transaction/entry.js';
import { fencedTransaction } from '../transaction/transaction.js';
import type { Parts } from './parts.js';

/** A transaction that a call wants, under what it was granted. */
export interface TransactionRequest<Tx, R> {
  readonly database: Database<Tx>;
  readonly entry?: Entry<Tx> | undefined;
  readonly leases: Call<Tx, R>['leases'] & { attach(user: LeaseUser): () => void };
  readonly options: ResolvedLockOptions;
  /** When the wait time is over, in which the admission has to be had. */
  readonly deadline: Deadline;
  readonly registered?: Registered;
  /** Called when COMMIT is about to be sent: whose turn it is next. */
  readonly successor?: () => Successor | undefined;
  /** Called when COMMIT has been sent, and nobody's turn begins with it. */
  readonly committing?: () => void;
  /** Called once for each run of the work, when its outcome is known. */
  readonly settled?: (outcome: Outcome) => void;
  /** Whether whoever is in the way is ended, of whichever waiting room. */
  readonly endsAnyBlocker?: boolean;
  /** Whether it goes on while the client is being closed. */
  readonly whileClosing?: boolean;
}

/** Runs it; the loss of a lease and the caller's signal abort it, and until it is admitted the end of the client. */
export async function runUnderLeases<Tx, R>(
  { room, roomId, fencing, outage, emit }: Parts,
  request: TransactionRequest<Tx, R>,
  abort: LazyAbort,
  work: Call<Tx, R>['work'],
): Promise<R> {
  const { leases, options, deadline } = request;
  const { signal, waitTime, timeout, retries, maxWait, isolationLevel } = options;
  const aborted = signal && { handleEvent: () => abort.abort(signal.reason) };
  if (aborted) onAbort(signal, aborted);
  if (signal?.aborted) aborted?.handleEvent();
  let beat = () => {};
  const detach = leases.attach({ lost: (loss) => abort.abort(loss), beat: () => beat() });
  if (leases.loss) abort.abort(leases.loss);
  const admitted = request.whileClosing ? () => {} : room.untilAdmitted(leases.key, (error) => abort.abort(error));
  try {
    return await fencedTransaction<Tx, R>({
      database: request.database,
      entry: request.entry,
      fencing,
      outage,
      leases,
      room: request.endsAnyBlocker ? undefined : roomId,
      limits: { timeout, retries, maxWait, isolationLevel, wait: { deadline, waitTime } },
      abort,
      registered: request.registered,
      successor: request.successor,
      committing: request.committing,
      settled: request.settled,
      work(tx, admission, ask) {
        admitted();
        return work(tx, admission, ask);
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
