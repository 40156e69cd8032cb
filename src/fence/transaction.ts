import { sleep } from '../base/clock.js';
import { LockTimeoutError, NotInstalledError, StaleTokenError } from '../base/errors.js';
import { Attempt } from './attempt.js';
import type { Call } from './call.js';

const LOCK_NOT_AVAILABLE = '55P03';
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';
/** How many closed connections of the pool a call gets over; one that was never admitted has done nothing. */
const MOST_DISCONNECTS = 3;
/** Pauses before the work runs again double from the first to the longest, each with chance in it; milliseconds. */
const FIRST_PAUSE = 2;
const LONGEST_PAUSE = 50;
/** No such schema, function or table, or no right to use it. */
const NOT_INSTALLED: ReadonlySet<string> = new Set(['3F000', '42883', '42P01', '42501']);

/**
 * The caller's work in a transaction that Postgres has admitted; in another one, with a fresh token, where it was
 * refused for what may be gone by then and `retries` allows it.
 *
 * @returns what the work returned, and only if its transaction has committed.
 */
export async function fencedTransaction<Tx, R>(call: Call<Tx, R>): Promise<R> {
  const { grant, limits, strike } = call;
  let refusal: unknown;
  for (let run = 0; ; run++) {
    try {
      return await admittedTransaction(call, run === 0 ? call.opening : undefined, refusal);
    } catch (error) {
      if (run >= limits.retries || !mayPass(error, call)) throw error;
      if (strike.struck || grant.loss) throw error;
      refusal = error;
      // Chance keeps apart those who met once: they would meet again.
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** run) * Math.random();
      await strike.unlessStruck(sleep(pause));
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
  opened: Call<Tx, R>['opening'],
  refusal: unknown,
): Promise<R> {
  const { database, grant, limits } = call;
  // In the order of their tokens those who wait for a row overtake each other, again and again. Who has lost once gets
  // the row first and its token then.
  const { model, where } = refusal instanceof StaleTokenError ? refusal : {};
  const refusedBy = model === undefined ? undefined : call.fencing.rowOf(model, where);
  let opening = opened;
  let disconnects = 0;
  for (let blocked = false; ; ) {
    const attempt = new Attempt(call, opening ?? database.open(limits), { blocked, refusedBy });
    opening = undefined;
    try {
      return await attempt.run();
    } catch (error) {
      if (attempt.admitted) throw error;
      if (call.strike.struck) throw call.strike.reason;
      // A connection of the pool that Postgres had closed, as it does with one that was idle for too long under a lock.
      if (database.isDisconnect(error) && ++disconnects <= MOST_DISCONNECTS) continue;
      const code = database.sqlState(error);
      if (code !== undefined && NOT_INSTALLED.has(code)) throw new NotInstalledError(error);
      if (code !== LOCK_NOT_AVAILABLE && code !== SERIALIZATION_FAILURE) throw error;
      blocked ||= code === LOCK_NOT_AVAILABLE;
      if (limits.wait.deadline.passed) throw new LockTimeoutError(grant.key, `${limits.wait.waitTime} ms`, error);
    }
  }
}
