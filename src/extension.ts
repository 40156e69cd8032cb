import { Prisma } from '@prisma/client/extension';
import { assemble } from './assemble.js';
import { InsideTransactionError, InvalidOptionError } from './base/errors.js';
import { heldKey, holds } from './base/held-keys.js';
import { type LockHandle, lock, resume } from './call/handle.js';
import type { Lock, Work } from './call/lock.js';
import type { LockCall } from './call/lock-request.js';
import { type OnceResult, oncePer } from './call/once-per.js';
import { forceRelease, inspect, type LockState, list } from './call/operators.js';
import { type TryResult, tryWithLock, withLock } from './call/with-lock.js';
import type { FencedLockOptions, HandleState, LockOptions, OnceOptions, ResolvedOptions } from './options/options.js';
import { checkKey, checkKeys, checkParts, checkState, checkWork } from './options/validate-arguments.js';
import { resolveLockOptions, resolveOptions, resolveSchedule } from './options/validate-options.js';
import { isTransactionClient } from './prisma/client.js';
import type { PrismaInternals } from './prisma/internals.js';
import { noticingWrites } from './prisma/outside.js';
import { standsInTransaction } from './prisma/plain-transaction.js';
import type { NOT_ON_TX } from './prisma/tx.js';

/** The client of a lock's transaction: the caller's own, extensions included, without what would leave it. */
export type LockTx<Client> = Omit<Client, (typeof NOT_ON_TX)[number]>;

/** `$tryWithLock` does not wait, so it takes no `waitTime`. */
export type TryLockOptions = Omit<LockOptions, 'waitTime'>;

/** A resumed handle keeps the lease time that it had. */
export type ResumeOptions = Omit<LockOptions, 'leaseTime'>;

/** One for all calls without options: it is there as long as its caller waits. */
const NONE = Object.freeze({});

/**
 * A client whose models of these names have the field: applying the extension to another one does not compile. Names
 * that only the run time knows are checked there.
 */
type WithFence<Model extends string, Field extends string> = string extends Model | Field
  ? unknown
  : { [M in Model as Uncapitalize<M>]: { fields: { [F in Field]: unknown } } };

/**
 * The Prisma client extension: adds `$withLock`, `$tryWithLock`, `$oncePer`, `$lock`, `$resumeLock` and `$locks`.
 *
 * @throws InvalidOptionError for an option that cannot be used, when it is made and when it is applied.
 */
export function fencedLock<const Model extends string = never, const Field extends string = 'fence'>(
  options: FencedLockOptions & {
    readonly models?: readonly Model[] | undefined;
    readonly fenceField?: Field | undefined;
  },
) {
  const extension = extensionOf(resolveOptions(options));
  return extension as (client: WithFence<Model, Field>) => ReturnType<typeof extension>;
}

function extensionOf(resolved: ResolvedOptions) {
  return Prisma.defineExtension((client) => {
    const base = client as unknown as PrismaInternals;
    const { parts, store, databaseOf, close } = assemble(base, resolved);
    let own: unknown;
    const keysOf = (key: unknown): readonly string[] => {
      const keys = checkKeys(key);
      if (resolved.unsetKeyParts === 'throw') checkParts(keys);
      return keys;
    };
    const check = (self: unknown, method: string, keys: readonly string[], given: LockOptions): LockCall<object> => {
      const outermost = Prisma.getExtensionContext(self) as unknown as PrismaInternals | undefined;
      if (outermost === undefined) {
        throw new InvalidOptionError('this', `must be the client: call it as \`prisma.${method}(…)\`.`);
      }
      refuseInside(outermost, method, keys[0]);
      const options = resolveLockOptions(given, resolved.defaults);
      if (options.nested === 'throw' && heldKey() === undefined && standsInTransaction()) {
        throw insideTransaction(method, 'inside the function of a `$transaction`', keys[0]);
      }
      // Our own layer has nothing for a transaction, whose hook is another one: there it would only cost time.
      const database = databaseOf(outermost === own ? base : outermost);
      return { client: outermost, database, keys, options, given };
    };
    const extended = client.$extends({
      name: 'fenced-lock',
      query: noticingWrites(),
      client: {
        /**
         * Runs `fn` alone under `key`, in one transaction whose updates cannot be lost. Several keys are taken all or
         * none, in an order of their own.
         *
         * @returns what `fn` returned, and only if its transaction has committed; inside another call of the same keys,
         *   whose transaction it joins, when `fn` has ended.
         * @throws LockTimeoutError, LockUnavailableError: the lock was not had, nothing was done.
         * @throws LockLostError, StaleTokenError, TransactionAbortedError: it was rolled back.
         * @throws CommitUnknownError where neither can be found out.
         * @throws whatever `fn` threw, untouched: it was rolled back.
         */
        $withLock<T, R>(
          this: T,
          key: string | readonly string[],
          fn: (tx: LockTx<T>, lock: Lock) => R | Promise<R>,
          options: LockOptions = NONE,
        ): Promise<R> {
          return promised(() => {
            const keys = keysOf(key);
            checkWork(fn);
            return withLock(parts, check(this, '$withLock', keys, options), fn as Work<object, R>);
          });
        },

        /**
         * `$withLock` that does not wait: `{ acquired: false }` if somebody else has one of the keys now.
         *
         * @throws as `$withLock`, except LockTimeoutError.
         */
        async $tryWithLock<T, R>(
          this: T,
          key: string | readonly string[],
          fn: (tx: LockTx<T>, lock: Lock) => R | Promise<R>,
          options: TryLockOptions = NONE,
        ): Promise<TryResult<R>> {
          const keys = keysOf(key);
          checkWork(fn);
          const call = check(this, '$tryWithLock', keys, options);
          if ('waitTime' in options) {
            throw new InvalidOptionError('waitTime', 'has no place in $tryWithLock, which does not wait.');
          }
          return await tryWithLock(parts, call, fn as Work<object, R>);
        },

        /**
         * Runs `fn` as `$withLock` does, if no run of this key has been committed in the present interval. For jobs that
         * a timer starts on many machines: whoever comes first runs. Does not wait.
         *
         * @param interval milliseconds, 100 to 2^31 - 1. Intervals begin at its multiples since the Unix epoch (UTC), by the
         *   clock of Postgres.
         * @returns `{ ran: true, value }`, and only if its transaction has committed. `{ ran: false, next }` if a run of this
         *   interval has been committed, or somebody has the key right now (`busy`).
         * @throws as `$tryWithLock`; ReentryError inside a lock of the same key.
         */
        async $oncePer<T, R>(
          this: T,
          key: string,
          interval: number,
          fn: (tx: LockTx<T>, lock: Lock) => R | Promise<R>,
          options: OnceOptions = NONE,
        ): Promise<OnceResult<R>> {
          const keys = keysOf(checkKey(key));
          checkWork(fn);
          const { schedule, rest } = resolveSchedule(interval, options);
          const call = check(this, '$oncePer', keys, rest);
          return await oncePer(parts, call, schedule, fn as Work<object, R>);
        },

        /**
         * A handle: the lock, held until it is released. For work that is more than one transaction.
         *
         * @throws LockTimeoutError, LockUnavailableError: the lock was not had.
         */
        async $lock<T>(
          this: T,
          key: string | readonly string[],
          options: LockOptions = NONE,
        ): Promise<LockHandle<LockTx<T>>> {
          const handle = await lock(parts, check(this, '$lock', keysOf(key), options));
          return handle as unknown as LockHandle<LockTx<T>>;
        },

        /**
         * The handle that `state` was made from by `toJSON()`, in this process from now on; the old one is lost.
         *
         * @throws StaleTokenError if somebody else has been admitted since or its row is gone, LockLostError if its lease has ended.
         */
        async $resumeLock<T>(this: T, state: HandleState, options: ResumeOptions = {}): Promise<LockHandle<LockTx<T>>> {
          const checked = checkState(state);
          const call = check(this, '$resumeLock', checked.keys, options);
          if ('leaseTime' in options)
            throw new InvalidOptionError('leaseTime', 'is that of the handle that is resumed.');
          const handle = await resume(parts, call, checked);
          return handle as unknown as LockHandle<LockTx<T>>;
        },

        /** For operators. */
        $locks: {
          /** What both servers know of a key. */
          async inspect(key: string): Promise<LockState> {
            return await inspect(store, databaseOf(base).rescue, checkKey(key));
          },
          /** The keys that somebody has or waits for now. */
          async list(): Promise<readonly LockState[]> {
            return await list(store, databaseOf(base).rescue);
          },
          /**
           * Takes a key from whoever has it: ends the transaction at work under it, and makes what its holder still has
           * in hand stale. `false` if nobody was in the way.
           */
          async forceRelease(key: string): Promise<boolean> {
            const checked = checkKey(key);
            refuseInside(undefined, '$locks.forceRelease', holds(checked) ? checked : undefined);
            return await forceRelease(parts, store, databaseOf(base), checked, resolved.defaults);
          },
          /** Turns away who waits, waits for the work that runs, gives back what is held. Calls after it begin anew. */
          async close(): Promise<void> {
            refuseInside(undefined, '$locks.close', heldKey());
            await close();
          },
        },

        /** Closes the locks as `$locks.close()` does, then the client. */
        async $disconnect(): Promise<void> {
          refuseInside(undefined, '$disconnect', heldKey());
          await close();
          await base.$disconnect();
        },
      },
    });
    own = extended;
    return extended;
  });
}

/** What an async function would do, which would be there as long as its caller waits. */
function promised<R>(call: () => Promise<R>): Promise<R> {
  try {
    return call();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** @throws InsideTransactionError on the client of a transaction. */
function refuseInside(client: PrismaInternals | undefined, method: string, key: string | undefined): void {
  if (client === undefined ? key === undefined : !isTransactionClient(client)) return;
  if (client !== undefined) throw insideTransaction(method, 'on the client of a transaction', key);
  throw new InsideTransactionError(
    `\`${method}\` was called inside the function of a lock, and would wait for its end.`,
    {
      key,
    },
  );
}

function insideTransaction(method: string, where: string, key: string | undefined): InsideTransactionError {
  return new InsideTransactionError(
    `\`${method}\` was called ${where}, which would wait for the lock while it holds a connection and rows. Call it on ` +
      'the client itself, outside of any transaction, and work in the transaction that it gives.',
    { key },
  );
}
