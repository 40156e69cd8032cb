import { assembleLocks } from '../assemble.js';
import { ensure } from '../base/checks.js';
import type { LockHandle, PermitHandle } from '../call/handle.js';
import type { Lock, Permit } from '../call/lock.js';
import { makeObservable } from '../call/observed.js';
import type { OnceResult } from '../call/once-per.js';
import type { TryResult } from '../call/with-lock.js';
import { lockClient, type ResumeOptions, type TryLockOptions } from '../client.js';
import type { PgPool } from '../connection/pg.js';
import { isPool, refuseQueryTimeout } from '../connection/pool.js';
import { type BeginAt, poolDatabase, queryOver } from '../connection/pool-database.js';
import { ownSettings, Rescue } from '../connection/rescue.js';
import type { Database } from '../database/database.js';
import { Fencing } from '../fencing/fencing.js';
import type { FencedLockOptions, HandleState, LockOptions, OnceOptions, PermitOptions } from '../options/options.js';
import { resolveLockOptions, resolveOptions } from '../options/resolve.js';

/** The options of `fencedLocks`: those of the Prisma extension, but for its models. The database guard checks the fence. */
export interface FencedLocksOptions extends Omit<FencedLockOptions, 'rescue' | 'models' | 'fenceField'> {
  /** The application's pool of pg. It stays its own: `close` does not end it. */
  readonly pool: PoolLike;
  /**
   * A pool for the rescue connection, on which the outcome of a lost COMMIT is found out and backends are ended. Default: made
   * with the settings of `pool`, with one connection that is closed when it is idle.
   */
  readonly rescue?: PoolLike | undefined;
}

/** A `Pool` of pg. Only a part of the type, because the full types differ between versions of pg. */
export interface PoolLike {
  readonly waitingCount: number;
  connect(...args: never[]): unknown;
  query(...args: never[]): unknown;
  end(): Promise<void>;
}

/** The locks of an application, as `fencedLocks` makes them. Each verb does what the `$` method of the same name does on Prisma's client. */
export interface FencedLocks<Tx> {
  /**
   * Runs `fn` alone under `key`, in one transaction whose updates cannot be lost. Several keys are all taken or none, in sorted
   * order.
   *
   * @returns the result of `fn`, only if its transaction has committed.
   * @throws LockTimeoutError, LockUnavailableError if the lock was not acquired; nothing was done.
   * @throws LockLostError, StaleTokenError, TransactionAbortedError if the transaction was rolled back.
   * @throws CommitUnknownError if it cannot be found out whether the transaction has committed.
   * @throws InsideTransactionError, NestedError, ReentryError, InvalidOptionError, NotInstalledError, ClosedError if the call was
   *   refused; nothing was done.
   * @throws the error of `fn`, unchanged; the transaction was rolled back.
   */
  withLock<R>(
    key: string | readonly string[],
    fn: (tx: Tx, lock: Lock) => R | Promise<R>,
    options?: LockOptions,
  ): Promise<R>;
  /** `withLock` without waiting. Resolves to `{ acquired: false }` if another caller has one of the keys. */
  tryWithLock<R>(
    key: string | readonly string[],
    fn: (tx: Tx, lock: Lock) => R | Promise<R>,
    options?: TryLockOptions,
  ): Promise<TryResult<R>>;
  /** Runs `fn` as `withLock` does, if no run of this key has been committed in the present interval; milliseconds. Does not wait. */
  oncePer<R>(
    key: string,
    interval: number,
    fn: (tx: Tx, lock: Lock) => R | Promise<R>,
    options?: OnceOptions,
  ): Promise<OnceResult<R>>;
  /** Returns a handle: a lock that is held until it is released, for work of more than one transaction. */
  lock(key: string | readonly string[], options?: LockOptions): Promise<LockHandle<Tx>>;
  /**
   * Runs `fn` as `withLock` does, as one of at most so many at a time, over all processes. `lock.permit` says which one. Waits in
   * order of arrival. A row that several permits write is written under a lock.
   */
  withPermit<R>(
    key: string,
    of: PermitOptions,
    fn: (tx: Tx, lock: Permit) => R | Promise<R>,
    options?: LockOptions,
  ): Promise<R>;
  /** `withPermit` without waiting. Resolves to `{ acquired: false }` if no permit is free. */
  tryWithPermit<R>(
    key: string,
    of: PermitOptions,
    fn: (tx: Tx, lock: Permit) => R | Promise<R>,
    options?: TryLockOptions,
  ): Promise<TryResult<R>>;
  /** Returns a handle of a permit. */
  permit(key: string, of: PermitOptions, options?: LockOptions): Promise<PermitHandle<Tx>>;
  /** Continues, in this process, the handle whose `toJSON()` gave `state`. The old handle loses the lock. */
  resumeLock(state: HandleState, options?: ResumeOptions): Promise<LockHandle<Tx>>;
  /** For operators. */
  readonly locks: ReturnType<typeof lockClient>['methods']['$locks'];
  /** Turns away who waits, waits for the work that runs, gives back what is held. The pool stays open. */
  close(): Promise<void>;
}

/** As Prisma's; milliseconds. A caller has its lease while it waits for a connection. */
const MAX_WAIT = 2_000;
/** What only the options of the Prisma extension have. */
const OF_PRISMA = ['models', 'fenceField'];

/**
 * The locks over one pool. Opens no connection. `begin`: as the database client begins a transaction on the pool.
 *
 * @throws InvalidOptionError
 */
export function locksOver<Tx>(
  { pool: given, rescue: rescueGiven, ...others }: FencedLocksOptions,
  begin: BeginAt<Tx>,
): FencedLocks<Tx> {
  for (const name of OF_PRISMA) {
    ensure(!(name in others), name, 'is of Prisma: the guard of the database checks the fence here. Leave it out.');
  }
  const pool = checkPool('pool', given);
  const rescuePool = rescueGiven == null ? undefined : checkPool('rescue', rescueGiven);
  const resolved = resolveOptions(others as FencedLockOptions);
  const defaults = { ...resolved.defaults, maxWait: resolved.defaults.maxWait ?? MAX_WAIT };
  const open = async () => {
    const own = rescuePool ?? ownPoolOf(pool);
    return { query: queryOver(own), close: async () => (own === rescuePool ? undefined : await own.end()) };
  };
  const rescue = new Rescue(open);
  // A connection of its own: looks, such as those of a board, must not keep an outcome waiting.
  const lookout = new Rescue(open);
  const database = poolDatabase(pool, rescue.query, begin) as Database<object>;
  const { observed, ...ports } = assembleLocks(resolved, lookout.query);
  const client = {};
  const { methods } = lockClient(resolved, {
    ...ports,
    database,
    fencing: new Fencing(resolved.fenceField, new Set(), new Map()),
    calledOn: () => ({ client, database }),
    resolve: (options) => resolveLockOptions(options, defaults),
    close() {
      rescue.close();
      lookout.close();
    },
    disconnect: async () => {},
  });
  const { $withLock, $tryWithLock, $oncePer, $lock, $resumeLock, $locks, $disconnect } = methods;
  const { $withPermit, $tryWithPermit, $permit } = methods;
  makeObservable($locks, observed);
  const locks = {
    withLock: $withLock,
    tryWithLock: $tryWithLock,
    oncePer: $oncePer,
    lock: $lock,
    withPermit: $withPermit,
    tryWithPermit: $tryWithPermit,
    permit: $permit,
    resumeLock: $resumeLock,
    locks: $locks,
    close: $disconnect,
  };
  return locks as unknown as FencedLocks<Tx>;
}

type Pool = PgPool & Parameters<typeof queryOver>[0] & Pick<PoolLike, 'end'> & { readonly options?: object };

/** @throws InvalidOptionError for what cannot hold locks */
export function checkPool(name: string, pool: unknown): Pool {
  ensure(isPool(pool), name, 'must be a pool of pg: new Pool({ connectionString }).');
  refuseQueryTimeout((pool as Pool).options);
  return pool as Pool;
}

/** A pool with the settings of another one, for a single connection. */
function ownPoolOf(pool: Pool): Pool {
  const own = new (pool.constructor as new (settings: object) => Pool)(ownSettings(pool.options ?? {}));
  // The statement that was in flight fails, and the next one gets another connection.
  own.on('error' as 'connect', () => {});
  return own;
}
