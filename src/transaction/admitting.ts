import { type Alarm, after, stop, within } from '../base/clock.js';
import { type AbortReason, LockTimeoutError, TransactionAbortedError } from '../base/errors.js';
import type { Connection, Statement } from '../database/database.js';
import { AWAIT_ROW, OWN_TRANSACTION, START_EPOCH } from '../database/sql.js';
import type { Admission } from './admission.js';
import { ANSWER_TIME, endBlockers, roomOf } from './backends.js';
import type { Call, CallContext, EarlierAttempts } from './call.js';
import { Opening } from './opening.js';

/**
 * How long an admission waits for the lock on the key's row before the blocking transactions are looked for;
 * milliseconds.
 */
const ROW_LOCK_TIMEOUT = 500;
/** The same for a call whose wait time is over, such as `$tryWithLock`; milliseconds. It has the lease. */
const LEAST_ROW_WAIT = 250;
/** How long an admission waits before the transactions that block it are ended; most end within it. Milliseconds. */
const END_BLOCKERS_AFTER = 50;
/** How long to wait, after the admission, for the reply of the statement that ends blockers; milliseconds. */
const END_BLOCKERS_TIME = 500;

/** Opens the transaction of a call that has its leases. */
export function open<Tx, R>(call: Call<Tx, R>, { blocked, staleRow }: EarlierAttempts): Opening<Tx> {
  const { deadline, rollsBack } = call;
  const before: Statement[] = [];
  if (staleRow !== undefined) before.push({ text: AWAIT_ROW, values: staleRow });
  if (blocked) before.push({ text: OWN_TRANSACTION, values: [] });
  const waitTime = () =>
    // Its own transaction may hold the key's row for a round trip to Postgres, however far away that is.
    rollsBack?.() ? ROW_LOCK_TIMEOUT : Math.min(ROW_LOCK_TIMEOUT, Math.max(LEAST_ROW_WAIT, deadline.remaining));
  return new Opening({ ...call, room: roomOf(call), waitTime, before });
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
  let ending: Promise<void> | undefined;
  const end = () =>
    opening.before.at(-1)?.listen(
      ({ rows: [own] }) => {
        ending = endBlockers(call, own);
      },
      () => {},
    );
  const timer = isBlocked ? after(END_BLOCKERS_AFTER, end) : undefined;
  try {
    const admission = await opening.admission.promise;
    // The `backend-ended` events come before the work begins, so that forceRelease() sees them.
    if (ending) await within(ending, END_BLOCKERS_TIME);
    // On the rescue connection and not awaited, so the work is not delayed. Until an epoch exists, the outcome of a
    // lost COMMIT is found by the attempt ids in the key's row.
    if (admission.epoch === undefined) void call.database.rescue(START_EPOCH, []).catch(() => {});
    return admission;
  } finally {
    stop(timer);
  }
}

/** Behind the COMMIT of the previous turn, the answer to the admission may take the whole wait time. */
function limitWait(call: CallContext, connection: Connection, alarm: Alarm): void {
  const { abort, deadline, leases, options } = call;
  const wasBehind = connection.isBehindCommit;
  const most = ROW_LOCK_TIMEOUT + 2 * ANSWER_TIME;
  if (abort.aborted) return;
  alarm.set(wasBehind ? Math.min(most, deadline.remaining) : most, () => {
    if (deadline.passed && connection.isBehindCommit) {
      const lost = new Error('the COMMIT before it was not answered');
      abort.abort(new LockTimeoutError(leases.key, `${options.waitTime} ms`, lost));
    } else if (wasBehind) limitWait(call, connection, alarm);
    else abortFor(call, 'connection', 'Postgres did not answer its first statement.');
  });
}

/** A process that stood still finds the lease and this overdue, and may run this first. */
export function abortFor({ abort, leases }: CallContext, reason: AbortReason, why: string): void {
  abort.abort(leases.loss ?? new TransactionAbortedError(leases.key, reason, why));
}
