import type { Alarm } from '../base/clock.js';
import { type AbortReason, LockTimeoutError, TransactionAbortedError } from '../base/errors.js';
import type { Connection, Statement } from '../database/database.js';
import { AWAIT_ROW, OWN_TRANSACTION, START_EPOCH } from '../database/sql.js';
import type { Admission } from './admission.js';
import { ANSWER_TIME, BlockerEnd, roomOf } from './blockers.js';
import type { Call, CallContext, EarlierAttempts } from './call.js';
import { Opening, openingOptions } from './opening.js';

/**
 * How long an admission waits for the lock on the key's row before the blocking transactions are looked for;
 * milliseconds.
 */
const ROW_LOCK_TIMEOUT = 500;
/** The same for a call whose wait time is over, such as `$tryWithLock`; milliseconds. It has the lease. */
const LEAST_ROW_WAIT = 250;
/** How often to look whether the COMMIT has been answered that the admission was sent with; milliseconds. */
const COMMIT_CHECK = 500;

/** Opens the transaction of a call that has its leases. */
export function open<Tx, R>(call: Call<Tx, R>, { blocked, staleRow }: EarlierAttempts): Opening<Tx> {
  const before: Statement[] = [];
  if (staleRow !== undefined) before.push({ text: AWAIT_ROW, values: staleRow });
  if (blocked) before.push({ text: OWN_TRANSACTION, values: [] });
  const input = { ...call, room: roomOf(call), waitTime: () => waitTimeOf(call), before };
  return new Opening(call.database, openingOptions(input));
}

function waitTimeOf<Tx, R>({ deadline, rollsBack }: Call<Tx, R>): number {
  // Its own transaction may hold the key's row for a round trip to Postgres, however far away that is.
  return rollsBack?.() ? ROW_LOCK_TIMEOUT : Math.min(ROW_LOCK_TIMEOUT, Math.max(LEAST_ROW_WAIT, deadline.remaining));
}

/** Waits for the admission, for a limited time. `isBlocked`: ends the transactions that are in its way. */
export async function admissionOf(
  call: CallContext,
  opening: Opening<unknown>,
  connection: Connection,
  alarm: Alarm,
  isBlocked: boolean,
): Promise<Admission> {
  limitWait(call, connection, alarm);
  const blockers = isBlocked ? new BlockerEnd(call, opening.before.at(-1)) : undefined;
  try {
    const admission = await opening.admission.promise;
    // The `backend-ended` events come before the work begins, so that forceRelease() sees them.
    if (blockers) await blockers.ended();
    // On the rescue connection and not awaited, so the work is not delayed. Until an epoch exists, the outcome of a
    // lost COMMIT is found by the attempt ids in the key's row.
    if (admission.epoch === undefined) void call.database.rescue(START_EPOCH, []).catch(() => {});
    return admission;
  } finally {
    blockers?.stop();
  }
}

/** Behind the COMMIT of the previous turn, the answer to the admission may take the whole wait time. */
function limitWait(call: CallContext, connection: Connection, alarm: Alarm): void {
  const { abort, deadline, leases, options } = call;
  if (!connection.isBehindCommit) {
    const why = 'Postgres did not answer its first statement.';
    abortAfter(call, alarm, ROW_LOCK_TIMEOUT + 2 * ANSWER_TIME, 'connection', () => why);
    return;
  }
  if (abort.aborted) return;
  alarm.set(Math.min(COMMIT_CHECK, deadline.remaining), () => {
    if (!deadline.passed || !connection.isBehindCommit) {
      limitWait(call, connection, alarm);
      return;
    }
    const lost = new Error('the COMMIT before it was not answered');
    abort.abort(new LockTimeoutError(leases.key, `${options.waitTime} ms`, lost));
  });
}

/** After an abort, the alarm has another action, which must not be replaced. */
export function abortAfter(
  { abort, leases }: CallContext,
  alarm: Alarm,
  ms: number,
  reason: AbortReason,
  why: () => string,
): void {
  if (abort.aborted) return;
  // A process that stood still finds both overdue, and this timer may be the first that it runs.
  alarm.set(ms, () => abort.abort(leases.loss ?? new TransactionAbortedError(leases.key, reason, why())));
}
