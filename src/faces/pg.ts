import type { ClientBase } from 'pg';
import type { LockHandle, PermitHandle } from '../call/handle.js';
import type { Work } from '../call/lock.js';
import { plainly } from '../connection/pool-database.js';
import { checkPool, type FencedLocks, type FencedLocksOptions, locksOver, type PoolLike } from './locks.js';
import { PoolTransaction, poolFor, type Running } from './pool-transaction.js';

export * from '../public.js';
export type { FencedLocks, FencedLocksOptions, PoolLike } from './locks.js';

/**
 * The connection of a lock's transaction: `query` as pg's clients have it, and query objects such as cursors. One statement in each
 * query. SAVEPOINT is allowed; the lock itself begins and ends the transaction.
 */
export type LockClient = Pick<ClientBase, 'query'>;

/** The locks over a pool of pg. */
export interface PgLocks<Pool extends PoolLike> extends FencedLocks<LockClient> {
  /**
   * The pool for another database library, such as an ORM: the transaction that it begins on this pool inside the function of a lock,
   * in its async context, is the lock's. Once it is used, the function of each lock has to begin exactly one transaction
   * there, or to work with `client`.
   */
  readonly pool: Pool;
}

/**
 * Makes the locks of an application over its pool of pg.
 *
 * @throws InvalidOptionError for an option that cannot be used.
 */
export function fencedLocks<Pool extends PoolLike>(
  options: FencedLocksOptions & { readonly pool: Pool },
): PgLocks<Pool> {
  const given = checkPool('pool', options?.pool);
  const begin = plainly(given);
  let pool: Pool | undefined;
  const inner = locksOver<PoolTransaction>(options, async (body, level) => {
    let own: PoolTransaction | undefined;
    try {
      await begin(async (connection) => {
        own = new PoolTransaction(given, connection, level);
        await body(own);
      }, level);
      own?.settle();
    } catch (error) {
      own?.settle({ error });
      throw error;
    }
  });
  const mustBegin = () => pool !== undefined;
  const work = <R>(fn: Work<LockClient, R>): Work<PoolTransaction, Running<R>> =>
    // What is no function is refused like that of any other call.
    typeof fn === 'function' ? (own, lock) => own.run(fn, lock, mustBegin) : fn;
  const ofHandle = <Handle extends LockHandle<LockClient>>(handle: LockHandle<PoolTransaction>): Handle => {
    const begun = handle.$transaction.bind(handle);
    const $transaction: LockHandle<LockClient>['$transaction'] = async (fn, given) =>
      await (await begun(work(fn), given)).value;
    return Object.assign(handle as unknown as Handle, { $transaction });
  };
  return {
    ...inner,
    get pool() {
      pool ??= poolFor(given) as unknown as Pool;
      return pool;
    },
    withLock: async (key, fn, options) => await (await inner.withLock(key, work(fn), options)).value,
    async tryWithLock(key, fn, options) {
      const result = await inner.tryWithLock(key, work(fn), options);
      return result.acquired ? { acquired: true, value: await result.value.value } : result;
    },
    async oncePer(key, interval, fn, options) {
      const result = await inner.oncePer(key, interval, work(fn), options);
      return result.ran ? { ran: true, value: await result.value.value } : result;
    },
    lock: async (key, options) => ofHandle(await inner.lock(key, options)),
    withPermit: async (key, of, fn, options) =>
      await (await inner.withPermit(key, of, work(fn as Work<LockClient, never>), options)).value,
    async tryWithPermit(key, of, fn, options) {
      const result = await inner.tryWithPermit(key, of, work(fn as Work<LockClient, never>), options);
      return result.acquired ? { acquired: true, value: await result.value.value } : result;
    },
    permit: async (key, of, options) => ofHandle<PermitHandle<LockClient>>(await inner.permit(key, of, options)),
    resumeLock: async (state, options) => ofHandle(await inner.resumeLock(state, options)),
  };
}
