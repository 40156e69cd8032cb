import { randomUUID } from 'node:crypto';
import { withCaller } from '../base/caller.js';
import { after, Deadline, stop, type Timer } from '../base/clock.js';
import { LockTimeoutError } from '../base/errors.js';
import { LazyAbort } from '../base/lazy-abort.js';
import { permitOf } from '../base/permits.js';
import type { Database } from '../database/database.js';
import type { ResolvedLockOptions } from '../options/options.js';
import { admissionRequest } from '../transaction/admission.js';
import type { NextTurn } from '../transaction/call.js';
import { type Chained, Opening, type OpeningInput } from '../transaction/opening.js';
import { fencedTransaction } from '../transaction/transaction.js';
import type { Lease } from '../waiting/lease.js';
import {
  type LeaseRequest,
  type Preopen,
  type PreopenMoment,
  type Turn,
  type TurnUser,
  withOthers,
} from '../waiting/turn.js';
import { CallHooks, type Work } from './lock.js';
import { type LockCall, type Parts, traced } from './parts.js';
import { join, joinableOf, workOf } from './work.js';

/**
 * Limits of a transaction that is opened ahead of its lease. `openTime`: how long it keeps its connection without the
 * lease. `rowTime`: how long its admission waits for the key's row. Both in milliseconds.
 *
 * Beside a look, the key's row is free if the lease is. Beside another holder's COMMIT, the row is free when the COMMIT
 * is done; the release and the offer follow within a round trip.
 */
const PREOPEN = {
  look: { openTime: 20, rowTime: 10 },
  commit: { openTime: 150, rowTime: 100 },
} as const;
const SNAPSHOT: ReadonlySet<string | undefined> = new Set(['RepeatableRead', 'Serializable']);
/**
 * How long an admission that was sent with the COMMIT of the previous turn may wait for the key's row. Only another
 * process can have locked it; milliseconds.
 */
const BEHIND_COMMIT = 500;

/** How a transaction of a call is opened: how long its admission waits for the key's row, and as whose. */
interface HowOpened {
  readonly waitTime: number;
  /** Whether it has no lease of its own, because Redis is down. */
  readonly shared?: boolean;
  readonly evenIfWanted?: boolean;
}

/** The transaction that was opened ahead. */
interface Ahead<Tx> {
  readonly opening: Opening<Tx>;
  readonly timer: Timer;
  /** For how long it may wait for the offer, if it was opened beside the COMMIT of a holder in another process. */
  readonly besideCommit: Deadline | undefined;
}

/** The result of `$tryWithLock`. A key that is not free is a value; every failure is an error. */
export type TryResult<R> = { readonly acquired: true; readonly value: R } | { readonly acquired: false };

/**
 * Runs one call: acquires the lease, runs the transaction that Postgres admits, releases the lease, runs the hooks. The
 * lease keeps other callers waiting in Redis. Only the admission ensures that no update is lost.
 */
export function withLock<Tx, R>(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>): Promise<R> {
  const joinable = joinableOf(call);
  if (joinable) return join(joinable, work, call.given);
  return traced(call.operation ?? '$withLock', parts, call, (call) => {
    const request = new LockRequest(parts, call, work);
    const key = call.keys[0] as string;
    if (call.trace === undefined) return parts.room.enter(key, request, request);
    // Not in the async context of the wait, which ends with the turn.
    return call.trace.wait(() => parts.room.enter(key, request)).then((turn) => request.useTurn(turn));
  });
}

/** Like `withLock`, but waits neither for the lease nor, beyond a moment, for the key's row in Postgres. */
export async function tryWithLock<Tx, R>(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>): Promise<TryResult<R>> {
  const result = await workNow(parts, call, work);
  return result.acquired ? result : { acquired: false };
}

/** As `tryWithLock`, and tells what was seen of the holder. */
export async function workNow<Tx, R>(
  parts: Parts,
  call: LockCall<Tx>,
  work: Work<Tx, R>,
): Promise<
  { readonly acquired: true; readonly value: R } | { readonly acquired: false; readonly why: LockTimeoutError }
> {
  let begun = false;
  const noted: Work<Tx, R> = (tx, lock) => {
    begun = true;
    return work(tx, lock);
  };
  try {
    const value = await withLock(
      parts,
      { ...call, operation: call.operation ?? '$tryWithLock', options: { ...call.options, waitTime: 0 } },
      noted,
    );
    return { acquired: true, value };
  } catch (error) {
    // Once the work has begun, the timeout is the work's own, perhaps of another lock. So may be the reason of the caller's signal.
    const isOwn = !begun && error !== call.options.signal?.reason;
    if (isOwn && error instanceof LockTimeoutError) return { acquired: false, why: error };
    throw error;
  }
}

/**
 * The request of one call, from its start until its turn. A single object, with getters in place of fields, because thousands
 * of callers may wait.
 *
 * Its transaction is opened ahead, beside the look in Redis, if that look is likely to succeed: nobody waited for the key
 * lately, or the key is offered to this process. If the caller has to wait, the transaction is rolled back first: a
 * waiting caller holds no connection.
 */
class LockRequest<Tx, R> implements LeaseRequest, Preopen, TurnUser<R> {
  readonly deadline: Deadline;
  readonly #parts: Parts;
  readonly #call: LockCall<Tx>;
  readonly #work: Work<Tx, R>;
  #ahead: Ahead<Tx> | undefined;
  #chained: Chained | undefined;
  #rollsBack = false;

  constructor(parts: Parts, call: LockCall<Tx>, work: Work<Tx, R>) {
    this.#parts = parts;
    this.#call = call;
    this.#work = work;
    this.deadline = new Deadline(call.options.waitTime);
    // Not for a call that is turned away at once: it would open a connection, behind `$disconnect` too.
    if (call.options.signal?.aborted) return;
    if (call.keys.every((key) => parts.room.isRecentlyUncontended(key))) this.open('look');
  }

  get options(): ResolvedLockOptions {
    return this.#call.options;
  }

  get preopen(): Preopen {
    return this;
  }

  /** Called when the call has the lease of its first key. */
  async useTurn(first: Turn): Promise<R> {
    const { keys } = this.#call;
    try {
      const turn = keys.length > 1 ? await withOthers(first, this.#parts.room, keys, this) : first;
      const { hookErrors } = this.options;
      const hooks = new CallHooks({ parts: this.#parts, key: keys[0] as string, hookErrors });
      return await hooks.runAfter(this.#hold(turn, hooks));
    } catch (error) {
      throw withCaller(error);
    }
  }

  open(beside: PreopenMoment): void {
    const { keys } = this.#call;
    // Which permit it gets is not known before it has it.
    if (this.#ahead || permitOf(keys[0] as string) !== undefined) return;
    const besideCommit = beside === 'commit';
    // A snapshot that is older than the other holder's COMMIT could not update the rows that it wrote. Of several keys, the
    // others may have holders of their own.
    if (besideCommit && (SNAPSHOT.has(this.options.isolationLevel) || keys.length > 1)) return;
    const holders = keys.map(() => randomUUID());
    const { openTime, rowTime } = PREOPEN[beside];
    // Beside a COMMIT it may turn out to be of no use, so it must not take a connection that others wait for.
    const input = this.#openingInput(holders, { waitTime: rowTime, evenIfWanted: !besideCommit });
    let opening: Opening<Tx>;
    try {
      opening = new Opening(input);
    } catch {
      // The caller opens it again when it is its turn, and gets the error then.
      return;
    }
    const timer = after(openTime, () => this.discard());
    const ahead = { opening, timer, besideCommit: besideCommit ? new Deadline(openTime) : undefined };
    this.#ahead = ahead;
    if (!besideCommit) return;
    // What Postgres has refused is of no use at the offer.
    opening.admission.promise.catch(() => {
      if (this.#ahead === ahead) this.discard();
    });
  }

  get isAdmitted(): boolean {
    // By the clock: after a pause of the process, an old offer may be read before the timer runs.
    const { besideCommit, opening } = this.#ahead ?? {};
    return besideCommit?.passed === false && opening?.admission.value !== undefined;
  }

  wait(): void {
    // What was begun at a hint is kept for a moment: the hint may have come while the look was under way.
    if (!this.#ahead?.besideCommit) this.discard();
  }

  discard(): void {
    const opening = this.#notAhead();
    if (opening === undefined) return;
    this.#rollsBack = true;
    void opening.discard().then(() => {
      this.#rollsBack = false;
    });
  }

  /** From now on, no transaction is opened ahead. Returns the one that was. */
  #notAhead(): Opening<Tx> | undefined {
    const { opening, timer } = this.#ahead ?? {};
    stop(timer);
    this.#ahead = undefined;
    return opening;
  }

  /** Prepares this call to begin in one flight with the COMMIT of the previous turn, if it can. */
  chain(database: Database<unknown>, { holder, shared }: Lease): NextTurn | undefined {
    const { keys } = this.#call;
    if (database !== this.#call.database || keys.length > 1) return undefined;
    const request = admissionRequest(this.#openingInput([holder], { waitTime: BEHIND_COMMIT, shared }));
    return {
      request,
      onSent: (connection) => {
        this.#chained = { request, connection };
      },
    };
  }

  /**
   * Returns the transaction that was opened ahead, if there is one, or that was begun with the COMMIT before. `shared`: whether
   * this call has no lease of its own.
   */
  #take(shared: boolean): Opening<Tx> | undefined {
    // The next holder may end a transaction that is registered in its waiting room, as that of a former holder.
    if (shared) this.discard();
    const opening = this.#notAhead();
    if (this.#chained === undefined) return opening;
    opening?.discard();
    // Not in `chain`, because that runs in the async context of the previous turn.
    return new Opening(this.#openingInput([], { waitTime: BEHIND_COMMIT }), this.#chained);
  }

  /** Runs the work in the turn, then ends it. */
  async #hold(turn: Turn, hooks: CallHooks): Promise<R> {
    const call = this.#call;
    const { database, trace } = call;
    const abort = new LazyAbort();
    trace?.had(turn);
    try {
      return await fencedTransaction<Tx, R>({
        parts: this.#parts,
        database,
        opening: this.#take(turn.shared),
        leases: turn,
        options: this.options,
        deadline: this.deadline,
        abort,
        work: workOf({ call, fn: this.#work, abort, hooks, joins: true }),
        handover: turn,
        nextTurn: () =>
          turn.pass((next, lease) => (next instanceof LockRequest ? next.chain(database, lease) : undefined)),
        notCommitted: (outcome) => hooks.settle(outcome),
        rollsBack: () => this.#rollsBack,
        trace,
      });
    } finally {
      // The outcome is known, or cannot be found out any more. Nothing here throws.
      turn.end();
      trace?.released();
    }
  }

  #openingInput(
    holders: readonly string[],
    { waitTime, shared = false, evenIfWanted = true }: HowOpened,
  ): OpeningInput<Tx> {
    const { database, keys, options } = this.#call;
    const leases = { keys, holders, leaseTime: options.leaseTime, shared };
    const parts = this.#parts;
    return { parts, database, options, leases, room: parts.roomId, waitTime: () => waitTime, evenIfWanted };
  }
}
