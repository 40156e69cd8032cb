import { offAbort, onAbort } from '../../base/abort-listeners.js';
import {
  FencedLockError,
  inFlightAtReturn,
  type LossReason,
  StaleTokenError,
  TransactionAbortedError,
} from '../../base/errors.js';
import { holding } from '../../base/held-keys.js';
import { LazyAbort } from '../../base/lazy-abort.js';
import { type CallHooks, HeldLock, type JoinableTransaction, type Work } from '../../call/lock.js';
import type { ResolvedLockOptions } from '../../options/options.js';
import type { CallRecord } from './calls.js';
import type { Plan } from './plan.js';
import { Statements } from './statements.js';
import { startTimer } from './timer.js';
import type { FakeTurn } from './turns.js';

/** A transaction that a call, or a handle, wants. */
export interface FakeRequest {
  /** The client that the lock was taken on, as `currentTx` is given it. */
  readonly owner: object;
  /** Whether an inner call of the same keys may join it; nothing joins a handle. */
  readonly joins: boolean;
  /** What the function works on. */
  readonly client: object;
  readonly turn: FakeTurn;
  readonly plan: Plan | undefined;
  readonly options: ResolvedLockOptions;
  readonly record: CallRecord;
  readonly hooks: CallHooks;
  /** The token of this run: a retry has another one. */
  token(): bigint;
}

/** Runs `work` as one transaction of the fake, and again where `retries` says so. */
export async function fakeTransaction<R>(request: FakeRequest, work: Work<object, R>): Promise<R> {
  let { plan } = request;
  for (let run = 0; ; run++) {
    try {
      return await runOnce({ ...request, plan }, work);
    } catch (error) {
      const isConflict =
        plan?.conflict === error ||
        (error instanceof StaleTokenError && error.reason === 'other-key' && !error.ofHandle);
      if (!isConflict || run >= request.options.retries) throw error;
      plan = undefined;
    }
  }
}

async function runOnce<R>(request: FakeRequest, work: Work<object, R>): Promise<R> {
  const { owner, joins, client, turn, plan, options, record, hooks } = request;
  const { signal, timeout } = options;
  const [key, token] = [turn.keys[0] as string, request.token()];
  record.begin(token);
  const abort = new LazyAbort();
  // The test may have named another one of several keys.
  const named = plan?.key ?? key;
  const lose = (reason: LossReason) => turn.lose(reason, named);
  const detach = turn.lost.onAbort(() => abort.abort(turn.lost.reason));
  const aborted = { handleEvent: () => abort.abort(signal?.reason) };
  onAbort(signal, aborted);
  if (signal?.aborted) aborted.handleEvent();
  const overdue = `the work had not ended within its timeout of ${timeout} ms. If that is too short, raise \`timeout\`.`;
  const stop = startTimer(timeout, () => abort.abort(new TransactionAbortedError(key, 'timeout', overdue)));
  const statements = new Statements(plan, abort, { key: named, token, ofHandle: !joins, lose });
  const { tx, close } = statements.on(client);
  const lock = new HeldLock(turn.keys, token, abort);
  hooks.begin(lock);
  const own: JoinableTransaction = { client: owner, tx, lock, abort, options, joined: undefined };
  try {
    abort.throwIfAborted();
    const value = await abort.race(
      holding(turn.keys, joins ? own : undefined, own, () => work(tx, lock)).finally(() => lock.end()),
    );
    own.joined?.check();
    if (statements.inFlight !== undefined) throw inFlightAtReturn(key, `\`${statements.inFlight}\``);
    if (plan?.lost) lose(plan.lost.reason);
    abort.throwIfAborted();
    if (statements.refusal) throw statements.refusal.error;
    // It wrote nothing that could have been refused.
    if (plan?.refused) throw plan.refused.error(named, token, !joins);
    if (plan?.conflict) throw plan.conflict;
    if (plan?.atCommit) throw plan.atCommit.error(key);
    record.end('committed');
    hooks.settle({ type: 'committed' });
    return value;
  } catch (error) {
    // What it threw came of that, or came after it.
    const cause = abort.aborted ? abort.reason : (statements.refusal?.error ?? error);
    own.joined?.end(cause);
    const isUnknown = cause instanceof FencedLockError && cause.code === 'COMMIT_UNKNOWN';
    record.end(isUnknown ? 'unknown' : 'rolled back', cause);
    hooks.settle({ type: isUnknown ? 'unknown' : 'rolled-back', error: cause });
    throw cause;
  } finally {
    close();
    stop();
    detach();
    offAbort(signal, aborted);
  }
}
