import { withCaller } from './base/caller.js';
import { turnOfLoop } from './base/clock.js';
import { InvalidOptionError } from './base/errors.js';
import type { Emit } from './base/events.js';
import { heldKey, holds } from './base/held-keys.js';
import { type LockHandle, lock, type PermitHandle } from './call/handle.js';
import { history, type LockHistory } from './call/history.js';
import { type Lock, type Permit, RunningHooks, type Work } from './call/lock.js';
import { type OnceResult, oncePer } from './call/once-per.js';
import { inspect, type LockState, list, take } from './call/operators.js';
import type { LockCall, Parts } from './call/parts.js';
import { resume } from './call/resume.js';
import { type TryResult, tryWithLock, withLock } from './call/with-lock.js';
import type { Database, Query } from './database/database.js';
import { whereAnswered } from './database/installed.js';
import type { Fencing } from './fencing/fencing.js';
import {
  checkFunction,
  checkKey,
  checkKeys,
  checkParts,
  checkPermits,
  checkSeen,
  checkState,
  type Verb,
} from './options/arguments.js';
import type {
  HandleState,
  LockOptions,
  OnceOptions,
  PermitOptions,
  ResolvedLockOptions,
  ResolvedOptions,
  SeenState,
} from './options/options.js';
import { resolveSchedule } from './options/resolve.js';
import { refuseInsideLock, refuseInsideTransaction } from './prisma/inside-transaction.js';
import type { NOT_ON_TX } from './prisma/tx.js';
import type { Renewal } from './waiting/renewal.js';
import type { WaitingRoom } from './waiting/room.js';
import type { LeaseStore } from './waiting/store.js';

/**
 * The client of a lock's transaction: the caller's client with its extensions, without the methods that would leave the
 * transaction.
 */
export type LockTx<Client> = Omit<Client, (typeof NOT_ON_TX)[number]>;

/** `$tryWithLock` does not wait, so it takes no `waitTime`. */
export type TryLockOptions = Omit<LockOptions, 'waitTime'>;

/** A resumed handle keeps its lease time. */
export type ResumeOptions = Omit<LockOptions, 'leaseTime'>;

/** One object for all calls without options, because it exists as long as a caller waits. */
const NONE = Object.freeze({});

/** The client that a method was called on. */
interface CalledOn {
  readonly client: object;
  readonly database: Database<object>;
}

/** What the locks of one client stand on. */
export interface Ports {
  readonly store: LeaseStore;
  readonly renewal: Renewal;
  readonly room: WaitingRoom;
  readonly roomId: number;
  readonly fencing: Fencing;
  readonly emit: Emit;
  /** The database of the client without further extensions. */
  readonly database: Database<object>;
  /** A connection for looks: they must not keep an outcome waiting. */
  readonly lookout: Query;
  /** @throws InvalidOptionError, InsideTransactionError where a method cannot be called on `self`. */
  calledOn(self: unknown, method: string, key: string | undefined): CalledOn;
  /** The options of a call. @throws InvalidOptionError */
  resolve(given: LockOptions): ResolvedLockOptions;
  /** Called when all calls have ended, while further ones are still turned away. */
  close(): void;
  /** Closes the database client, behind `close`. */
  disconnect(): Promise<void>;
}

function refuseWaitTime(options: object): void {
  if ('waitTime' in options) throw new InvalidOptionError('waitTime', 'is not allowed here: this call does not wait.');
}

/** The locks of one client: what its calls share, and the methods that the client gets. Opens no connection. */
export function lockClient({ name, unsetKeyParts }: ResolvedOptions, ports: Ports) {
  const { store, room, renewal, database, lookout, resolve, disconnect } = ports;
  const { roomId, fencing, emit } = ports;
  const defaults = resolve(NONE);
  const [handles, hooks]: [Parts['handles'], RunningHooks] = [new Set(), new RunningHooks()];
  const parts: Parts = { name, room, roomId, handles, hooks, fencing, lookout, emit };
  /** `last` runs at the end, while calls are still turned away. */
  const close = async (last: () => Promise<void> = async () => {}): Promise<void> => {
    const givenBack = () => Promise.all([room.close(), ...[...handles].map((handle) => handle.close())]);
    await givenBack();
    // A call gives its lease back when its COMMIT is answered, and its hooks begin some microtasks later.
    await turnOfLoop();
    // Hooks may have taken locks since.
    while (await hooks.idle()) await givenBack();
    const open = room.shut();
    try {
      // Leases and handles of calls that began in between.
      await givenBack();
      await turnOfLoop();
      await hooks.idle();
      renewal.close();
      await store.close();
      ports.close();
      await last();
    } finally {
      open();
    }
  };
  const keysOf = (verb: Verb, key: unknown, fn?: unknown): readonly string[] => {
    const keys = checkKeys(key, verb);
    if (unsetKeyParts === 'throw') checkParts(keys);
    if (verb !== '$lock') checkFunction(fn, verb);
    return keys;
  };
  const permitsOf = (verb: Verb, key: unknown, of: unknown, fn?: unknown): readonly string[] => {
    const any = checkPermits(key, of, verb);
    if (unsetKeyParts === 'throw') checkParts([key as string]);
    if (verb !== '$permit') checkFunction(fn, verb);
    return any;
  };
  const rescue = (key?: string) => whereAnswered(database.rescue, database, key);
  const check = (self: unknown, method: string, keys: readonly string[], given: LockOptions): LockCall<object> => {
    const on = ports.calledOn(self, method, keys[0]);
    const options = given === NONE ? defaults : resolve(given);
    // The search of the call stack costs as much as the rest of this function.
    const mayBeInside = options.nested === 'throw' && on.database.mayBeInsideTransaction?.() !== false;
    if (mayBeInside && heldKey() === undefined) refuseInsideTransaction(method, keys[0]);
    return { client: on.client, database: on.database, keys, options, given };
  };
  const methods = {
    /**
     * Runs `fn` alone under `key`, in one transaction whose updates cannot be lost. Several keys are all taken or
     * none, in sorted order.
     *
     * @returns the result of `fn`, only if its transaction has committed. A call inside another one of the same
     *   keys joins its transaction and resolves when `fn` has ended.
     * @throws LockTimeoutError, LockUnavailableError if the lock was not acquired; nothing was done.
     * @throws LockLostError, StaleTokenError, TransactionAbortedError if the transaction was rolled back.
     * @throws CommitUnknownError if it cannot be found out whether the transaction has committed.
     * @throws HookFailedError, with `hookErrors: 'throw'` alone, if a hook has failed; the transaction has committed.
     * @throws InsideTransactionError, NestedError, ReentryError, InvalidOptionError, NotInstalledError, ClosedError if the call was
     *   refused; nothing was done.
     * @throws the error of `fn`, unchanged; the transaction was rolled back.
     */
    $withLock<T, R>(
      this: T,
      key: string | readonly string[],
      fn: (tx: LockTx<T>, lock: Lock) => R | Promise<R>,
      options: LockOptions = NONE,
    ): Promise<R> {
      // Not an async function, because its promise would exist as long as the caller waits.
      try {
        const keys = keysOf('$withLock', key, fn);
        return withLock(parts, check(this, '$withLock', keys, options), fn as Work<object, R>);
      } catch (error) {
        return Promise.reject(error);
      }
    },

    /**
     * `$withLock` without waiting. Resolves to `{ acquired: false }` if another caller has one of the keys.
     *
     * @throws the errors of `$withLock`, except LockTimeoutError.
     */
    async $tryWithLock<T, R>(
      this: T,
      key: string | readonly string[],
      fn: (tx: LockTx<T>, lock: Lock) => R | Promise<R>,
      options: TryLockOptions = NONE,
    ): Promise<TryResult<R>> {
      const keys = keysOf('$tryWithLock', key, fn);
      const call = check(this, '$tryWithLock', keys, options);
      refuseWaitTime(options);
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
      const keys = keysOf('$oncePer', checkKey(key), fn);
      const { schedule, rest } = resolveSchedule(interval, options);
      const call = check(this, '$oncePer', keys, rest);
      return await oncePer(parts, call, schedule, fn as Work<object, R>);
    },

    /**
     * Returns a handle: a lock that is held until it is released, for work of more than one transaction.
     *
     * @throws LockTimeoutError, LockUnavailableError if the lock was not acquired.
     */
    async $lock<T>(
      this: T,
      key: string | readonly string[],
      options: LockOptions = NONE,
    ): Promise<LockHandle<LockTx<T>>> {
      try {
        const handle = await lock(parts, check(this, '$lock', keysOf('$lock', key), options));
        return handle as unknown as LockHandle<LockTx<T>>;
      } catch (error) {
        throw withCaller(error);
      }
    },

    /**
     * Runs `fn` as `$withLock` does, as one of at most so many at a time, over all processes. `lock.permit` says which one.
     * Waits in order of arrival. The turns of different permits have no order: a row that two of them write is
     * written under a lock. A lock of the same key is another thing.
     *
     * @returns as `$withLock`. A call inside another one of the same key and number joins it.
     * @throws as `$withLock`.
     */
    async $withPermit<T, R>(
      this: T,
      key: string,
      of: PermitOptions,
      fn: (tx: LockTx<T>, lock: Permit) => R | Promise<R>,
      options: LockOptions = NONE,
    ): Promise<R> {
      const call = check(this, '$withPermit', permitsOf('$withPermit', key, of, fn), options);
      return await withLock(parts, { ...call, operation: '$withPermit' }, fn as Work<object, R>);
    },

    /** `$withPermit` without waiting. Resolves to `{ acquired: false }` if no permit is free. @throws as `$tryWithLock`. */
    async $tryWithPermit<T, R>(
      this: T,
      key: string,
      of: PermitOptions,
      fn: (tx: LockTx<T>, lock: Permit) => R | Promise<R>,
      options: TryLockOptions = NONE,
    ): Promise<TryResult<R>> {
      const call = check(this, '$tryWithPermit', permitsOf('$tryWithPermit', key, of, fn), options);
      refuseWaitTime(options);
      return await tryWithLock(parts, { ...call, operation: '$tryWithPermit' }, fn as Work<object, R>);
    },

    /**
     * Returns a handle of a permit, for work of more than one transaction, or of none. `permit` says which one it is.
     *
     * @throws LockTimeoutError, LockUnavailableError if none was acquired.
     */
    async $permit<T>(
      this: T,
      key: string,
      of: PermitOptions,
      options: LockOptions = NONE,
    ): Promise<PermitHandle<LockTx<T>>> {
      try {
        const call = check(this, '$permit', permitsOf('$permit', key, of), options);
        const handle = await lock(parts, { ...call, operation: '$permit' });
        return handle as unknown as PermitHandle<LockTx<T>>;
      } catch (error) {
        throw withCaller(error);
      }
    },

    /**
     * Continues, in this process, the handle whose `toJSON()` gave `state`. The old handle loses the lock.
     *
     * @throws StaleTokenError if another holder has been admitted since, or the key's row is gone; LockLostError if
     *   the lease has ended.
     */
    async $resumeLock<T>(this: T, state: HandleState, options: ResumeOptions = {}): Promise<LockHandle<LockTx<T>>> {
      const checked = checkState(state);
      const call = check(this, '$resumeLock', checked.keys, options);
      if ('leaseTime' in options)
        throw new InvalidOptionError('leaseTime', 'of a resumed handle cannot be changed. Leave it out.');
      try {
        const handle = await resume(parts, call, checked);
        return handle as unknown as LockHandle<LockTx<T>>;
      } catch (error) {
        throw withCaller(error);
      }
    },

    /** For operators. */
    $locks: {
      /** What both servers know of a key. @throws LockUnavailableError if one of them gives no answer. */
      async inspect(key: string): Promise<LockState> {
        const checked = checkKey(key);
        return await inspect(store, rescue(checked), checked);
      },
      /** The keys that somebody has or waits for now. @throws as `inspect`. */
      async list(): Promise<readonly LockState[]> {
        return await list(store, rescue());
      },
      /**
       * Takes a key from whoever has it: ends the transaction at work under it, and makes what its holder still has
       * in hand stale. `false` if nobody was in the way.
       *
       * @param seen the state that was seen, as by `inspect`: if another holder has the key by now, nothing is done, and
       *   the result is `false`. Default: takes it from whoever has it.
       */
      async forceRelease(key: string, seen?: SeenState): Promise<boolean> {
        const checked = checkKey(key);
        const checkedSeen = checkSeen(seen);
        refuseInsideLock('A force release', holds(checked) ? checked : undefined);
        const taken = await take(parts, store, database, checked, defaults, checkedSeen);
        return taken !== undefined && (taken.leaseTaken || taken.ended.length > 0);
      },
      /** Turns away who waits, waits for the work that runs, gives back what is held. Calls after it begin anew. */
      async close(): Promise<void> {
        refuseInsideLock('Closing the locks', heldKey());
        await close();
      },
      /**
       * The last turns of a key, newest first: up to 16 that Postgres remembers, and what this process has recorded of its
       * own since `recordLockHistory()`.
       */
      async history(key: string): Promise<LockHistory> {
        const checked = checkKey(key);
        return await history(whereAnswered(lookout, database, checked), parts.roomId, checked);
      },
    },

    /** Closes the locks as `$locks.close()` does, then the client. */
    async $disconnect(): Promise<void> {
      refuseInsideLock('Closing the locks', heldKey());
      await close(disconnect);
    },
  };
  return { parts, methods };
}
