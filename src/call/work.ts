import { after, reactionsDone, stop } from '../base/clock.js';
import { InvalidOptionError, inFlightAtReturn, TransactionAbortedError } from '../base/errors.js';
import { findJoinable, holding } from '../base/held-keys.js';
import { LazyAbort } from '../base/lazy-abort.js';
import { permitOf } from '../base/permits.js';
import type { Database, Query, Unfinished } from '../database/database.js';
import type { LockOptions, ResolvedLockOptions } from '../options/options.js';
import type { Admission } from '../transaction/admission.js';
import { type CallHooks, HeldLock, type Lock, type Work } from './lock.js';
import type { LockCall } from './parts.js';

/** What the runs of a call's function have in common. `joins`: whether inner calls of the same keys join its transaction. */
interface FunctionOf<Tx, R> {
  readonly call: Pick<LockCall<Tx>, 'client' | 'keys' | 'options' | 'beforeWork'> & {
    readonly database: Pick<Database<Tx>, 'unfinished'>;
  };
  readonly fn: Work<Tx, R>;
  readonly abort: LazyAbort;
  readonly hooks: CallHooks;
  readonly joins: boolean;
}

/** The work of a call's transactions: runs its function in one of them, as the holder of its keys. */
export function workOf<Tx, R>({
  call,
  fn,
  abort,
  hooks,
  joins,
}: FunctionOf<Tx, R>): (tx: Tx, admission: Pick<Admission, 'key' | 'token'>, ask: Query) => Promise<R> {
  const { client, database, keys, options, beforeWork } = call;
  return async (tx, { key, token }, ask) => {
    if (beforeWork) {
      await beforeWork(ask);
      abort.throwIfAborted();
    }
    const permit = permitOf(key);
    const lock = new HeldLock(permit === undefined ? keys : [permit.key], token, abort, permit?.permit);
    hooks.onRun(lock);
    const own: JoinableTransaction = { client, keys, tx, lock, abort, options, joined: undefined };
    try {
      const value = await holding(keys, joins ? own : undefined, own, () => fn(tx, lock));
      const unfinished = database.unfinished?.(tx);
      refuseUnawaited(own, unfinished);
      // A helper that was not awaited may be between two operations: let it begin the next one, which is then noticed.
      await reactionsDone();
      refuseUnawaited(own, unfinished);
      return value;
    } catch (error) {
      own.joined?.end(error);
      throw error;
    } finally {
      lock.end();
    }
  };
}

/**
 * Called when the function has returned. A call that has joined the transaction and failed, or still runs, dooms it. An
 * operation that was not sent by then is never sent. One that is in flight was not awaited, nor is what its caller sends
 * next: a commit would keep a part of that work. @throws TransactionAbortedError
 */
function refuseUnawaited({ lock, joined }: JoinableTransaction, unfinished: Unfinished | undefined): void {
  joined?.check();
  if (unfinished === undefined) return;
  const { unsent } = unfinished;
  if (unsent !== undefined) {
    throw new TransactionAbortedError(
      lock.key,
      'not-awaited',
      `\`${unsent}\` was called in its function and never awaited, so it was not sent. Await every operation, and remove ` +
        'those that are not needed.',
    );
  }
  const { inFlight } = unfinished;
  if (inFlight !== undefined) throw inFlightAtReturn(lock.key, `\`${inFlight}\``);
}

/** The transaction of a call, which inner calls of the same keys join. */
interface JoinableTransaction {
  readonly client: object;
  /** As its call has them: of a permit, the name of any one. */
  readonly keys: readonly string[];
  readonly tx: unknown;
  readonly lock: Lock;
  readonly abort: LazyAbort;
  readonly options: Pick<ResolvedLockOptions, 'isolationLevel' | 'hookErrors'>;
  /** Set by the first call that joins. */
  joined: JoinedCalls | undefined;
}

/**
 * The outer transaction to join. Only of the same client: another client's transaction may lack this client's
 * extensions.
 */
export function joinableOf({
  client,
  keys,
  options,
}: Pick<LockCall<unknown>, 'client' | 'keys' | 'options'>): JoinableTransaction | undefined {
  const mayJoin = (joinable: object) => {
    const outer = joinable as JoinableTransaction;
    // Another copy of this package has other classes.
    return options.reentry === 'join' && outer.lock instanceof HeldLock && outer.client === client;
  };
  return findJoinable(keys, options.nested, mayJoin) as JoinableTransaction | undefined;
}

/** Runs `work` in a transaction that has begun. @throws as `JoinedCalls.run`. */
export function join<Tx, R>(outer: JoinableTransaction, work: Work<Tx, R>, options: LockOptions): Promise<R> {
  outer.joined ??= new JoinedCalls(outer);
  return outer.joined.run(work, options);
}

/**
 * The calls that have joined the transaction of an outer call. They work in it under its token, and it ends with the
 * outermost call. If an inner call fails, the transaction cannot commit, even if the error is caught: it would commit
 * half of the inner call's work.
 */
class JoinedCalls {
  readonly #outer: JoinableTransaction;
  /** Aborts the inner calls that still run when the outer function ends: their writes are rolled back. */
  readonly #over = new LazyAbort();
  #running = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(outer: JoinableTransaction) {
    this.#outer = outer;
  }

  /** @throws InvalidOptionError for an option that cannot be changed for a transaction that has begun. */
  async run<Tx, R>(work: Work<Tx, R>, options: LockOptions): Promise<R> {
    const { abort, keys, lock, tx, options: outer } = this.#outer;
    const { isolationLevel, hookErrors, retries, timeout, signal } = options;
    if (isolationLevel !== undefined && isolationLevel !== outer.isolationLevel) {
      throw new InvalidOptionError('isolationLevel', 'is that of the outer call, whose transaction this one joins.');
    }
    if (hookErrors !== undefined && hookErrors !== outer.hookErrors) {
      throw new InvalidOptionError('hookErrors', 'is that of the outer call, with which the hooks of this one run.');
    }
    if (retries) {
      throw new InvalidOptionError('retries', 'belong to the outer call, whose transaction this one joins.');
    }
    abort.throwIfAborted();
    // Work that has outlived the outer function, and calls again.
    this.#over.throwIfAborted();
    signal?.throwIfAborted();
    const unfollow = abort.follow(signal);
    const overdue = () =>
      new TransactionAbortedError(
        lock.key,
        'timeout',
        `a call inside it had not ended within its timeout of ${timeout} ms. If that is too short, raise \`timeout\`.`,
      );
    const timer = timeout === undefined ? undefined : after(timeout, () => abort.abort(overdue()));
    this.#running++;
    try {
      // The outer function may end, by this rejection or by another of its parts, while `work` goes on: what `work` then calls
      // on the client must be refused, and not run without a lock.
      const worked = holding(keys, this.#outer, this.#outer, () => work(tx as Tx, lock));
      return await this.#over.race(abort.race(worked));
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    } finally {
      this.#running--;
      stop(timer);
      unfollow();
    }
  }

  /** Called when the outer function has failed. Inner calls that still run must not resolve as if they had committed. */
  end(error: unknown): void {
    if (this.#running === 0) return;
    const why = 'the call whose transaction it had joined ended before it did. See the cause.';
    this.#over.abort(new TransactionAbortedError(this.#outer.lock.key, 'inner-call', why, error));
  }

  /** Called when the outer function has returned. @throws TransactionAbortedError */
  check(): void {
    if (this.#failure) {
      const why = 'a call inside it failed, which dooms the transaction that both share. See the cause.';
      throw new TransactionAbortedError(this.#outer.lock.key, 'inner-call', why, this.#failure.error);
    }
    if (this.#running > 0) {
      throw new TransactionAbortedError(
        this.#outer.lock.key,
        'not-awaited',
        'a call inside it had not ended: await every one of them.',
      );
    }
  }
}
