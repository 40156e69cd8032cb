import { offAbort, onAbort } from '../base/abort-listeners.js';
import { sleep } from '../base/clock.js';
import {
  LockTimeoutError,
  LockUnavailableError,
  NotInstalledError,
  StaleTokenError,
  toFencedLockError,
} from '../base/errors.js';
import { NotRun } from '../database/database.js';
import { Attempt } from './attempt.js';
import type { Call } from './call.js';

const LOCK_NOT_AVAILABLE = '55P03';
const QUERY_CANCELED = '57014';
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';
/** Of a standby, or of a database that an operator or a hoster has made read-only, for example because its disk is full. */
const READ_ONLY = '25006';
/** How many closed connections of the pool a call skips. It may begin again, because it was never admitted. */
const MOST_DISCONNECTS = 3;
/** Pauses before the work runs again double from the first to the longest, with jitter; milliseconds. */
const FIRST_PAUSE = 2;
const LONGEST_PAUSE = 50;
/** Pause before a cancelled admission is sent again, because Postgres may cancel it again at once; milliseconds. */
const CANCELED_PAUSE = 50;
/** SQLSTATEs for a missing schema, function or table, or a missing right to use it. */
export const NOT_INSTALLED: ReadonlySet<string> = new Set(['3F000', '42883', '42P01', '42501']);

/** SQLSTATEs after which an admission is sent again within the wait time. */
const MAY_BEGIN_AGAIN: ReadonlySet<string> = new Set([LOCK_NOT_AVAILABLE, QUERY_CANCELED, SERIALIZATION_FAILURE]);
const BLOCKED =
  ": another transaction has its row in Postgres: a former holder's, or one that this client may not end, " +
  'of another waiting room (another keyPrefix, or work without Redis) or of another role';
const CANCELED =
  ': Postgres cancelled its admission. If a `statement_timeout` of the role is shorter than the wait for the ' +
  "key's row, raise it to a second";

/**
 * Runs the caller's work in a transaction that Postgres has admitted. Where `retries` allows it, a conflict that may
 * have passed makes the work run again in a new transaction with a new token.
 *
 * A lost lease, and the caller's signal, abort it. Closing the client aborts it until it is admitted.
 *
 * @returns the result of the work, only if its transaction has committed.
 */
export async function fencedTransaction<Tx, R>(call: Call<Tx, R>): Promise<R> {
  const { parts, leases, abort } = call;
  const { signal, retries } = call.options;
  const present: Present<Tx, R> = { attempt: undefined, hasBegun: false };
  const aborted = signal && { handleEvent: () => abort.abort(signal.reason) };
  if (aborted) onAbort(signal, aborted);
  if (signal?.aborted) aborted?.handleEvent();
  const detach = leases.attach({ lost: (loss) => abort.abort(loss), beat: () => present.attempt?.beat() });
  if (leases.loss) abort.abort(leases.loss);
  const turnAway = (error: unknown) => {
    if (!present.hasBegun && !present.attempt?.admitted) abort.abort(error);
  };
  const forget = call.whileClosing ? undefined : parts.room.untilAdmitted(leases.key, turnAway);
  try {
    let refusal: unknown;
    for (let run = 0; ; run++) {
      try {
        return await admittedTransaction(call, present, run === 0 ? call.entry : undefined, refusal);
      } catch (error) {
        if (run >= retries || !isRetryable(error, call)) throw error;
        if (abort.aborted || leases.loss) throw error;
        refusal = error;
        present.hasBegun ||= present.attempt?.admitted === true;
        // Jitter, so that two callers that met in a conflict do not meet again.
        const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** run) * Math.random();
        await abort.race(sleep(pause));
      }
    }
  } finally {
    forget?.();
    if (aborted) offAbort(signal, aborted);
    detach();
  }
}

/** The attempt that is under way. `hasBegun`: the work has begun in an earlier one. */
interface Present<Tx, R> {
  attempt: Attempt<Tx, R> | undefined;
  hasBegun: boolean;
}

function isRetryable(error: unknown, { database }: Pick<Call<unknown, unknown>, 'database'>): boolean {
  // A handle's token never rises, so the same row would refuse it again.
  if (error instanceof StaleTokenError) return error.reason === 'other-key' && !error.ofHandle;
  const code = database.sqlState(error);
  return code === SERIALIZATION_FAILURE || code === DEADLOCK;
}

/**
 * Runs the work once. Begins again only before the work has begun: the key's row is locked by another transaction, the
 * snapshot is older than the previous holder's commit, or the connection was closed.
 */
async function admittedTransaction<Tx, R>(
  call: Call<Tx, R>,
  present: Present<Tx, R>,
  ahead: Call<Tx, R>['entry'],
  refusal: unknown,
): Promise<R> {
  const { database, leases, deadline } = call;
  // Callers of different keys that write the same row draw their tokens before they get the row, so the higher token
  // may refuse the lower one again and again. A run that was refused once locks the row first and draws its token then.
  const { model, where } = refusal instanceof StaleTokenError ? refusal : {};
  const refusedBy = model === undefined ? undefined : call.parts.fencing.rowOf(model, where);
  let entry = ahead;
  let disconnects = 0;
  let canceled = false;
  for (let blocked = false; ; ) {
    const attempt = new Attempt(call, entry, { blocked, refusedBy });
    present.attempt = attempt;
    const wasAhead = entry !== undefined;
    entry = undefined;
    try {
      return await attempt.run();
    } catch (error) {
      if (attempt.admitted) throw error;
      if (call.abort.aborted) throw call.abort.reason;
      // Postgres may have closed an idle connection of the pool. Or the COMMIT that this transaction's BEGIN was sent
      // with failed, so Postgres skipped the BEGIN.
      const begins = database.isDisconnect(error) || error instanceof NotRun;
      // The server may have admitted it, and not know yet that the connection is gone.
      blocked ||= begins;
      if (begins && ++disconnects <= MOST_DISCONNECTS) continue;
      if (begins || database.isUnavailable(error)) {
        if (deadline.passed)
          throw new LockUnavailableError(leases.key, error, 'Postgres', undefined, { within: call.options.waitTime });
        call.parts.emit({ type: 'postgres-unavailable', key: leases.key, error });
        await call.parts.outage.wait(database, call.abort, deadline);
        continue;
      }
      if (database.isEnded?.(error)) throw new LockUnavailableError(leases.key, error, 'Postgres');
      const code = database.sqlState(error);
      if (code !== undefined && NOT_INSTALLED.has(code)) throw new NotInstalledError(error);
      if (code === READ_ONLY) throw new LockUnavailableError(leases.key, error, 'Postgres', undefined, 'read-only');
      if (code === undefined || !MAY_BEGIN_AGAIN.has(code)) throw toFencedLockError(error) ?? error;
      // An admission that was sent ahead waits only some milliseconds, so its timeout does not show a blocking
      // transaction.
      blocked ||= code !== SERIALIZATION_FAILURE && !wasAhead;
      canceled ||= code === QUERY_CANCELED;
      // An admission that was sent ahead waited some milliseconds only, perhaps for this call's own ROLLBACK.
      if (deadline.passed && !wasAhead) {
        const why = canceled ? CANCELED : blocked ? BLOCKED : '';
        throw new LockTimeoutError(leases.key, `${call.options.waitTime} ms${why}`, error);
      }
      if (code === QUERY_CANCELED) await call.abort.race(sleep(Math.min(CANCELED_PAUSE, deadline.remaining)));
    }
  }
}
