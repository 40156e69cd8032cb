import { LockTimeoutError } from '../../../base/errors.js';
import { join, joinableOf } from '../../../call/joined.js';
import type { Work } from '../../../call/lock.js';
import type { TryResult } from '../../../call/with-lock.js';
import type { FakeLockCall, FakeParts } from './parts.js';
import { fakeTransaction } from './transaction.js';
import type { FakeTurn } from './turns.js';

/** `$withLock` of a fake. */
export async function withLock<R>(parts: FakeParts, call: FakeLockCall, work: Work<object, R>): Promise<R> {
  const { method, keys, options, given } = call;
  const joinable = joinableOf(call);
  if (joinable) return await join(joinable, work, given);
  const record = parts.record(method, keys);
  const plan = parts.script.take(keys, 'both');
  const { waitTime, signal } = options;
  const turn = await parts.acquire(record, { plan, waitTime, signal }, (own) => own);
  const hooks = parts.hooksOf(keys, options);
  const admit = () => parts.admissions.draw(turn);
  const of = { owner: call.client, joins: true, client: parts.base };
  return await hooks.runAfter(
    hold(fakeTransaction({ ...of, turn, plan, options, record, hooks, admit }, work), turn, call),
  );
}

/** Keeps the keys until the transaction has ended. */
async function hold<R>(transaction: Promise<R>, turn: FakeTurn, { committed }: FakeLockCall): Promise<R> {
  try {
    const value = await transaction;
    committed?.();
    return value;
  } finally {
    turn.release();
  }
}

/** `$tryWithLock` of a fake. */
export async function tryWithLock<R>(
  parts: FakeParts,
  call: FakeLockCall,
  work: Work<object, R>,
): Promise<TryResult<R>> {
  let begun = false;
  const noted: Work<object, R> = (tx, lock) => {
    begun = true;
    return work(tx, lock);
  };
  try {
    const value = await withLock(parts, { ...call, options: { ...call.options, waitTime: 0 } }, noted);
    return { acquired: true, value };
  } catch (error) {
    // Once the work has begun, the timeout is the work's own, perhaps of another lock.
    if (!begun && error instanceof LockTimeoutError) return { acquired: false };
    throw error;
  }
}
