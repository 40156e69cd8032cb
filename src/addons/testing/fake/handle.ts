import { ClosedError } from '../../../base/errors.js';
import type { LockHandle } from '../../../call/handle.js';
import type { Work } from '../../../call/lock.js';
import type { TransactionOptions } from '../../../options/options.js';
import type { CallRecord } from './calls.js';

interface Watching {
  readonly record: CallRecord;
  /** As the caller knows it: the lease of a fake does not end by itself. */
  readonly leaseTime: number;
  /** Runs a transaction of the handle. */
  transaction<R>(fn: Work<object, R>, run: (fn: Work<object, R>) => Promise<R>): Promise<R>;
}

/** A handle whose transactions are calls that the test sees, too. */
export function watchedHandle(
  handle: LockHandle<object>,
  { record, leaseTime, transaction }: Watching,
): LockHandle<object> {
  const { key, keys, token, signal } = handle;
  let isReleased = false;
  record.begin(token, 'held');
  const ended = () => {
    if (record.outcome === 'held') record.end('released');
  };
  const aborted = () => (signal.reason instanceof ClosedError ? ended() : record.end('lost', signal.reason));
  if (signal.aborted) aborted();
  signal.addEventListener('abort', aborted);
  const release = async () => {
    isReleased = true;
    await handle.release();
    ended();
  };
  return {
    key,
    keys,
    token,
    signal,
    remaining: () => Math.min(handle.remaining(), leaseTime),
    async $transaction<R>(fn: Work<object, R>, options?: TransactionOptions): Promise<R> {
      // What is refused is no call.
      const isRefused = isReleased || signal.aborted || typeof fn !== 'function';
      if (isRefused) return await handle.$transaction(fn, options);
      return await transaction(fn, (watched) => handle.$transaction(watched, options));
    },
    release,
    [Symbol.asyncDispose]: release,
    toJSON: () => ({ ...handle.toJSON(), leaseTime }),
  };
}
