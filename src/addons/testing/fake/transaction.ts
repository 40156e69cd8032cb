import {
  FencedLockError,
  type LossReason,
  overdue,
  StaleTokenError,
  TransactionAbortedError,
} from '../../../base/errors.js';
import { LazyAbort } from '../../../base/lazy-abort.js';
import type { CallHooks } from '../../../call/hooks.js';
import type { Work } from '../../../call/lock.js';
import { workOf } from '../../../call/work.js';
import type { ResolvedLockOptions } from '../../../options/options.js';
import type { FakeAdmission } from './admissions.js';
import type { CallRecord } from './calls.js';
import { microtasks, OF_REACTIONS } from './lazy.js';
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
  /** Lets a run of the function in: a retry has another token. */
  admit(): FakeAdmission;
}

/** Runs `work` as one transaction of the fake, and again where `retries` says so. */
export async function fakeTransaction<R>(request: FakeRequest, work: Work<object, R>): Promise<R> {
  let { plan } = request;
  for (let run = 0; ; run++) {
    try {
      return await runOnce({ ...request, plan }, work);
    } catch (error) {
      const conflict = await plan?.conflict?.error.catch(() => undefined);
      const isConflict =
        (conflict !== undefined && conflict === error) ||
        (error instanceof StaleTokenError && error.reason === 'other-key' && !error.ofHandle);
      if (!isConflict || run >= request.options.retries) throw error;
      if (run + 1 >= (plan?.conflict?.times ?? 1)) plan = undefined;
    }
  }
}

/** There is no Postgres to ask, and nothing of a fake asks it. */
const asksNothing = () => Promise.reject(new Error('A fake lock has no database.'));

const reactions = () => microtasks(OF_REACTIONS);

async function runOnce<R>(request: FakeRequest, work: Work<object, R>): Promise<R> {
  const { owner, joins, client, turn, plan, options, record, hooks } = request;
  const { signal, timeout } = options;
  const key = turn.keys[0] as string;
  const { token, commit } = request.admit();
  record.begin(token);
  const abort = new LazyAbort();
  // The test may have named another one of several keys.
  const named = plan?.key ?? key;
  const lose = (reason: LossReason) => turn.lose(reason, named);
  const unfollow = abort.follow(signal);
  const detach = turn.lost.onAbort(() => abort.abort(turn.lost.reason));
  const stop = startTimer(timeout, () => abort.abort(new TransactionAbortedError(key, 'timeout', overdue(timeout))));
  const statements = new Statements(client, plan, abort, { key: named, token, ofHandle: !joins, lose });
  const fenced = statements.open();
  // What was called and not awaited is refused by the code that refuses it under a real lock.
  const database = { unfinished: () => statements };
  const call = { client: owner, database, keys: turn.keys, options };
  try {
    abort.throwIfAborted();
    const run = workOf({ call, fn: work, abort, hooks, joins, reactions });
    const value = await abort.race(run(fenced.proxy, { token }, asksNothing));
    if (plan?.lost) lose(plan.lost.reason);
    abort.throwIfAborted();
    if (statements.refusal) throw statements.refusal.error;
    // It wrote nothing that could have been refused.
    if (plan?.refused) throw plan.refused.error(named, token, !joins);
    if (plan?.conflict) throw await plan.conflict.error;
    if (plan?.atCommit) throw plan.atCommit.error(key);
    commit();
    record.end('committed');
    hooks.settle({ type: 'committed' });
    return value;
  } catch (error) {
    // The function goes on until its next operation, which is refused by that reason and not by the end of the transaction.
    if (abort.aborted) await reactions();
    // What it threw came of that, or came after it.
    const cause = abort.aborted ? abort.reason : (statements.refusal?.error ?? error);
    const isUnknown = cause instanceof FencedLockError && cause.code === 'COMMIT_UNKNOWN';
    record.end(isUnknown ? 'unknown' : 'rolled back', cause);
    hooks.settle({ type: isUnknown ? 'unknown' : 'rolled-back', error: cause });
    throw cause;
  } finally {
    fenced.close();
    stop();
    detach();
    unfollow();
  }
}
