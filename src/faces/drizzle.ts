import { ensure } from '../base/checks.js';
import { isPool } from '../connection/pool.js';
import { type FencedLocks, type FencedLocksOptions, locksOver, type PoolLike } from './locks.js';

export * from '../public.js';
export type { FencedLocks, PoolLike } from './locks.js';

/** A database of `drizzle-orm/node-postgres`. Only a part of the type, because the full types differ between versions of Drizzle. */
export interface DrizzleLike {
  transaction(...given: never[]): unknown;
  readonly $client: unknown;
}

/** What the function of Drizzle's `db.transaction` gets. */
type TransactionOf<DB> = DB extends { transaction(body: (tx: infer Tx) => Promise<unknown>): unknown } ? Tx : never;

/** The options of `fencedLocks` for Drizzle. */
export interface DrizzleLocksOptions<DB extends DrizzleLike> extends Omit<FencedLocksOptions, 'pool'> {
  /** The application's `drizzle(pool, …)`. Its pool stays its own: `close` does not end it. */
  readonly db: DB;
}

/**
 * Makes the locks of an application that works with Drizzle: the function of a lock gets what the function of
 * `db.transaction` gets, with the schema and the relational queries of `db`.
 *
 * @throws InvalidOptionError for an option that cannot be used.
 */
export function fencedLocks<DB extends DrizzleLike>(given: DrizzleLocksOptions<DB>): FencedLocks<TransactionOf<DB>> {
  const { db, ...options } = given ?? {};
  ensure(typeof db?.transaction === 'function', 'db', 'must be a database of Drizzle: fencedLocks({ db, redis }).');
  ensure(isPool(db.$client), 'db', 'must have a pool of pg: drizzle(new Pool({ connectionString })).');
  const begin = db.transaction.bind(db) as unknown as Begin;
  return locksOver<TransactionOf<DB>>({ ...options, pool: db.$client as PoolLike }, (body, level) =>
    level === undefined ? begin(body) : begin(body, { isolationLevel: level }),
  );
}

type Begin = <Tx>(body: (tx: Tx) => Promise<void>, config?: { isolationLevel: string }) => Promise<void>;
