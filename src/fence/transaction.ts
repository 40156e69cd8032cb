import { LockTimeoutError, NotInstalledError } from '../base/errors.js';
import { Attempt } from './attempt.js';
import type { Call } from './call.js';

const LOCK_NOT_AVAILABLE = '55P03';
const SERIALIZATION_FAILURE = '40001';
/** No such schema, function or table, or no right to use it. */
const NOT_INSTALLED: ReadonlySet<string> = new Set(['3F000', '42883', '42P01', '42501']);

/**
 * The caller's work in one transaction that Postgres has admitted. Begins again only where the work has not begun:
 * somebody stands in the key's row, or the snapshot is older than the turn before ours.
 *
 * @returns what the work returned, and only if its transaction has committed.
 */
export async function fencedTransaction<Tx, R>(call: Call<Tx, R>): Promise<R> {
  const { database, grant, limits } = call;
  for (let blocked = false; ; ) {
    const attempt = new Attempt(call, blocked);
    try {
      return await attempt.run();
    } catch (error) {
      if (attempt.admitted) throw error;
      const code = database.sqlState(error);
      if (code !== undefined && NOT_INSTALLED.has(code)) throw new NotInstalledError(error);
      if (code !== LOCK_NOT_AVAILABLE && code !== SERIALIZATION_FAILURE) throw error;
      blocked ||= code === LOCK_NOT_AVAILABLE;
      if (limits.wait.deadline.passed) throw new LockTimeoutError(grant.key, `${limits.wait.waitTime} ms`, error);
    }
  }
}
