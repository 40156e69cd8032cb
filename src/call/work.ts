import { reactionsDone } from '../base/clock.js';
import { inFlightAtReturn, TransactionAbortedError } from '../base/errors.js';
import { holding } from '../base/held-keys.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import type { Database, Query, Unfinished } from '../database/database.js';
import type { CallHooks } from './hooks.js';
import type { JoinableTransaction } from './joined.js';
import { HeldLock, type Work } from './lock.js';
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
}: FunctionOf<Tx, R>): (tx: Tx, admission: { readonly token: bigint }, ask: Query) => Promise<R> {
  const { client, database, keys, options, beforeWork } = call;
  return async (tx, { token }, ask) => {
    if (beforeWork) {
      await beforeWork(ask);
      abort.throwIfAborted();
    }
    const lock = new HeldLock(keys, token, abort);
    hooks.onRun(lock);
    const own: JoinableTransaction = { client, tx, lock, abort, options, joined: undefined };
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
