import { refuseNestedCall } from '../../../base/held-keys.js';
import type { Work } from '../../../call/lock.js';
import { notNow, type OnceResult } from '../../../call/once-per.js';
import type { Schedule } from '../../../options/options.js';
import type { FakeLockCall, FakeParts } from './parts.js';
import { nextInterval } from './runs.js';
import { tryWithLock } from './with-lock.js';

/** `$oncePer` of a fake: by the clock of this process, which fake timers may move. */
export async function oncePer<R>(
  parts: FakeParts,
  call: FakeLockCall,
  schedule: Schedule,
  work: Work<object, R>,
): Promise<OnceResult<R>> {
  const { keys, options } = call;
  const key = keys[0] as string;
  refuseNestedCall(keys, options.nested);
  // A run that is done is found by a look, which a closed client and an aborted signal refuse too.
  parts.turns.throwIfClosing(key);
  options.signal?.throwIfAborted();
  const due = parts.runs.due(key, schedule);
  if (due !== undefined) return notNow(due, Date.now(), false);
  const begunAt = Date.now();
  const committed = () => parts.runs.mark(key, begunAt);
  const result = await tryWithLock(parts, { ...call, committed }, work);
  if (result.acquired) return { ran: true, value: result.value };
  return notNow(Math.min(nextInterval(begunAt, schedule), begunAt + options.leaseTime), Date.now(), true);
}
