import type { IsolationLevel, Kysely, Transaction } from 'kysely';
import { ensure } from '../base/checks.js';
import { type FencedLocks, type FencedLocksOptions, locksOver } from './locks.js';

export * from '../public.js';
export type { FencedLocks, PoolLike } from './locks.js';

/** The options of `fencedLocks` for Kysely. */
export interface KyselyLocksOptions<DB> extends FencedLocksOptions {
  /** The application's Kysely, over a `PostgresDialect` with `pool`. */
  readonly db: Kysely<DB>;
}

/**
 * Makes the locks of an application that works with Kysely: the function of a lock gets Kysely's own `Transaction`, with the types
 * and the plugins of `db`.
 *
 * @throws InvalidOptionError for an option that cannot be used.
 */
export function fencedLocks<DB>(given: KyselyLocksOptions<DB>): FencedLocks<Transaction<DB>> {
  const { db, ...options } = given ?? {};
  ensure(typeof db?.transaction === 'function', 'db', 'must be a Kysely: fencedLocks({ db, pool, redis }).');
  return locksOver<Transaction<DB>>(options, (body, level) => {
    const transaction = db.transaction();
    return (level === undefined ? transaction : transaction.setIsolationLevel(level as IsolationLevel)).execute(body);
  });
}
