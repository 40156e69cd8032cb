import { sleep } from '../base/clock.js';
import { LockTimeoutError, LockUnavailableError, NotInstalledError, StaleTokenError } from '../base/errors.js';
import { NotRun } from '../database/database.js';
import { Attempt } from './attempt.js';
import type { Call } from './call.js';

const LOCK_NOT_AVAILABLE = '55P03';
const QUERY_CANCELED = '57014';
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';
/** How many closed connections of the pool a call gets over; one that was never admitted has done nothing. */
const MOST_DISCONNECTS = 3;
/** Pauses before the work runs again double from the first to the longest, each with chance in it; milliseconds. */
const FIRST_PAUSE = 2;
const LONGEST_PAUSE = 50;
/** Before the next try of an admission that Postgres has cancelled, which may have been at once; ms. */
const CANCELED_PAUSE = 50;
/** No such schema, function or table, or no right to use it. */
export const NOT_INSTALLED: ReadonlySet<string> = new Set(['3F000', '42883', '42P01', '42501']);

/** What an admission may be stopped by, and begin again while there is wait time. */
const MAY_BEGIN_AGAIN: ReadonlySet<string> = new Set([LOCK_NOT_AVAILABLE, QUERY_CANCELED, SERIALIZATION_FAILURE]);
const BLOCKED =
  ": another transaction has its row in Postgres: a former holder's, or one that is not ours to end, of another waiting " +
  'room (another keyPrefix, or work without Redis) or another role';
const CANCELED =
  ': Postgres cancelled its admission, as a `statement_timeout` of the role does that is shorter than it waits for the ' +
  "key's row: raise that to a second";

/**
 * The caller's work in a transaction that Postgres has admitted; in another one, with a fresh token, where it was
 * refused for what may be gone by then and `retries` allows it.
 *
 * @returns what the work returned, and only if its transaction has committed.
 */
export function fencedTransaction<Tx, R>(call: Call<Tx, R>): Promise<R> {
  return call.limits.retries === 0 ? admittedTransaction(call, call.entry, undefined) : repeatedTransaction(call);
}

async function repeatedTransaction<Tx, R>(call: Call<Tx, R>): Promise<R> {
  const { leases, limits, abort } = call;
  let refusal: unknown;
  for (let run = 0; ; run++) {
    try {
      return await admittedTransaction(call, run === 0 ? call.entry : undefined, refusal);
    } catch (error) {
      if (run >= limits.retries || !mayPass(error, call)) throw error;
      if (abort.aborted || leases.loss) throw error;
      refusal = error;
      // Chance keeps apart those who met once: they would meet again.
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** run) * Math.random();
      await abort.race(sleep(pause));
    }
  }
}

function mayPass(error: unknown, { database }: Pick<Call<unknown, unknown>, 'database'>): boolean {
  if (error instanceof StaleTokenError) return error.reason === 'other-key';
  const code = database.sqlState(error);
  return code === SERIALIZATION_FAILURE || code === DEADLOCK;
}

/**
 * One run of the work. Begins again only where the work has not begun: somebody stands in the key's row, the snapshot
 * is older than the turn before ours, or the connection was a dead one.
 */
async function admittedTransaction<Tx, R>(
  call: Call<Tx, R>,
  ahead: Call<Tx, R>['entry'],
  refusal: unknown,
): Promise<R> {
  const { database, leases, limits } = call;
  // In the order of their tokens those who wait for a row overtake each other, again and again. Who has lost once gets
  // the row first and its token then.
  const { model, where } = refusal instanceof StaleTokenError ? refusal : {};
  const refusedBy = model === undefined ? undefined : call.fencing.rowOf(model, where);
  let entry = ahead;
  let disconnects = 0;
  let canceled = false;
  for (let blocked = false; ; ) {
    const attempt = new Attempt(call, entry, { blocked, refusedBy });
    const wasAhead = entry !== undefined;
    entry = undefined;
    try {
      return await attempt.run();
    } catch (error) {
      if (attempt.admitted) throw error;
      if (call.abort.aborted) throw call.abort.reason;
      // A connection of the pool that Postgres had closed, as it does with one that was idle for too long under a lock.
      // Or the COMMIT before it failed, which took its beginning along.
      const begins = database.isDisconnect(error) || error instanceof NotRun;
      if (begins && ++disconnects <= MOST_DISCONNECTS) continue;
      if (begins || database.isUnavailable(error)) {
        if (limits.wait.deadline.passed) throw new LockUnavailableError(leases.key, error, 'Postgres');
        await call.outage.wait(database, call.abort, limits.wait.deadline);
        continue;
      }
      const code = database.sqlState(error);
      if (code !== undefined && NOT_INSTALLED.has(code)) throw new NotInstalledError(error);
      if (code === undefined || !MAY_BEGIN_AGAIN.has(code)) throw error;
      // One that was begun ahead waits hardly at all, and says nothing of who is in the way.
      blocked ||= code !== SERIALIZATION_FAILURE && !wasAhead;
      canceled ||= code === QUERY_CANCELED;
      const { deadline, waitTime } = limits.wait;
      if (deadline.passed) {
        const why = canceled ? CANCELED : blocked ? BLOCKED : '';
        throw new LockTimeoutError(leases.key, `${waitTime} ms${why}`, error);
      }
      if (code === QUERY_CANCELED) await call.abort.race(sleep(Math.min(CANCELED_PAUSE, deadline.remaining)));
    }
  }
}
