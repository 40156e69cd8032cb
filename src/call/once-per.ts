import { NOT_DUE } from '../base/call-trace.js';
import { LONGEST_TIME, now } from '../base/clock.js';
import { tryRead } from '../base/errors.js';
import { refuseNestedCall } from '../base/held-keys.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { Query } from '../database/database.js';
import { whereAnswered, whereInstalled } from '../database/installed.js';
import { MARK_RUN, NEXT_RUN } from '../database/sql.js';
import type { Schedule } from '../options/options.js';
import type { Work } from './lock.js';
import type { LockCall, Parts } from './parts.js';
import { workNow } from './with-lock.js';

/** What `$oncePer` resolves to. */
export type OnceResult<R> =
  | { readonly ran: true; readonly value: R }
  | {
      readonly ran: false;
      /**
       * When to call again, by the clock of Postgres. If done in this interval: when the next run is due. If `busy`: when
       * its holder, if that has crashed, has lost the lease; the begin of the next interval, if that is earlier.
       */
      readonly next: Date;
      /**
       * Milliseconds until then, for a timer: no matter what the clock of this machine shows. At most 2^31 - 1, the longest
       * delay of a timer.
       */
      readonly nextIn: number;
      /** Whether somebody else has the key right now, and the run of this interval has not been committed. */
      readonly busy: boolean;
    };

/** What Postgres says of a run: milliseconds since the Unix epoch, by its clock. */
interface State {
  readonly now: number;
  /** When it is due; `undefined`: now. */
  readonly due: number | undefined;
  /** When the next interval begins. */
  readonly after: number;
  /** When this answer arrived, by the clock of this process. */
  readonly heardAt: number;
}

/** Somebody else's run was committed since we looked. */
class NotDue extends Error {
  /** By which a trace knows that this is an answer, and no failure. */
  readonly code = NOT_DUE;
  readonly state: State;

  constructor(state: State) {
    super('the run of this interval has been committed');
    this.state = state;
  }
}

/**
 * At most one committed run in each interval. The mark of a run is written in the transaction of its work, behind the
 * admission of its key: both are committed, or neither is. The look before it only avoids needless calls.
 */
export async function oncePer<Tx, R>(
  parts: Parts,
  call: LockCall<Tx>,
  { interval, offset, atLeast }: Schedule,
  work: Work<Tx, R>,
): Promise<OnceResult<R>> {
  const { database, keys, options } = call;
  const key = keys[0] as string;
  refuseNestedCall(keys, options.nested);
  const values = [key, interval, offset, atLeast];
  const seen = await look(parts, call, values);
  if (seen.due !== undefined) return notNow(seen.due, presentOf(seen), false);
  const beforeWork = async (ask: Query) => {
    const state = await whereInstalled(ask, database)(MARK_RUN, values).then(stateOf);
    if (state.due !== undefined) throw new NotDue(state);
  };
  try {
    const result = await workNow(parts, { ...call, operation: '$oncePer', beforeWork }, work);
    if (result.acquired) return { ran: true, value: result.value };
    const present = presentOf(seen);
    // Where no holder is seen, several may have split the votes of independent nodes. Each is to come again alone.
    const expiresIn = result.why.expiresIn ?? Math.random() * options.leaseTime;
    return notNow(Math.min(seen.after, present + expiresIn + 1), present, true);
  } catch (error) {
    const state = tryRead(() => error instanceof NotDue && error.state);
    if (state) return notNow(state.due ?? state.after, presentOf(state), false);
    throw error;
  }
}

/**
 * Not on the pool, which may be full, nor on the rescue connection, which finds out outcomes. A caller that finds the run
 * done returns at once.
 */
async function look({ lookout, room }: Parts, call: LockCall<unknown>, values: readonly unknown[]): Promise<State> {
  const { database, keys, options } = call;
  const key = keys[0] as string;
  room.throwIfClosing(key);
  const looked = whereAnswered(lookout, database, key)(NEXT_RUN, values).then(stateOf);
  // Closing the client turns the call away, so that its work does not begin when the client is closed.
  const abort = new LazyAbort();
  const forget = room.untilAdmitted(key, (error) => abort.abort(error));
  const unfollow = abort.follow(options.signal);
  try {
    return await abort.race(looked);
  } finally {
    forget();
    unfollow();
  }
}

function stateOf([row]: Awaited<ReturnType<Query>>): State {
  const { now_ms, due_ms, after_ms } = row as Record<string, string | null>;
  return {
    now: Number(now_ms),
    due: due_ms == null ? undefined : Number(due_ms),
    after: Number(after_ms),
    heardAt: now(),
  };
}

/** The time of Postgres now, by an answer of it. */
function presentOf(state: State): number {
  return state.now + now() - state.heardAt;
}

/** The answer that it is not due at `present`. Node fires a timer at once whose delay is longer than the longest one. */
function notNow(next: number, present: number, busy: boolean): OnceResult<never> {
  const nextIn = Math.ceil(Math.min(Math.max(0, next - present), LONGEST_TIME));
  return { ran: false, next: new Date(next), nextIn, busy };
}
