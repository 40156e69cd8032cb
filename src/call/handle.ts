import { withCaller } from '../base/caller.js';
import { Deadline, now, OVERDUE, sleep, within } from '../base/clock.js';
import { ClosedError, type LockLostError, LockTimeoutError, StaleTokenError } from '../base/errors.js';
import { holds, refuseNestedCall } from '../base/held-keys.js';
import { LazyAbort } from '../base/lazy-abort.js';
import { permitOf } from '../base/permits.js';
import { TOUCH } from '../database/sql.js';
import { checkFunction } from '../options/arguments.js';
import type { HandleState, ResolvedLockOptions, TransactionOptions } from '../options/options.js';
import { resolveTransactionOptions } from '../options/resolve.js';
import { fencedTransaction } from '../transaction/transaction.js';
import type { LeaseUser } from '../waiting/lease.js';
import { type Turn, withOthers } from '../waiting/turn.js';
import { CallHooks, type HookName, type Lock, type Work } from './lock.js';
import { type LockCall, type Parts, traced } from './parts.js';
import { register } from './register.js';
import { workOf } from './work.js';

/**
 * After Postgres has refused a handle's token: how long its lease is left for the process that resumed it, and how
 * often to look; milliseconds.
 */
const TRANSFER_TIME = 1_000;
const TRANSFER_PAUSE = 50;
/** How often the rows of an open handle's keys are touched, and when again if that failed; milliseconds. */
const TOUCH_EVERY = 3_600_000;
const TOUCH_AGAIN = 60_000;
const RELEASED = 'This lock was released, so it cannot begin a transaction any more.';
const GIVEN_BACK =
  'The client was closed, and this lock was given back: it can begin no transaction any more. What it has committed before stays.';

/**
 * A lock that is held until it is released, for work of more than one transaction. Its token is registered and
 * committed in Postgres before the caller sees it, so it can be handed to other systems, which then refuse lower
 * tokens.
 */
export interface LockHandle<Tx> extends Omit<Lock, 'toJSON' | HookName>, AsyncDisposable {
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal;
  /** Whole milliseconds until the lease expires, if it is not renewed; 0 once it is lost or released. */
  remaining(): number;
  /**
   * Runs `fn` in a transaction that Postgres admits under this handle's token. A handle's transactions run one after the
   * other. Hooks of the lock that `fn` gets run when its transaction has ended, while the handle still has the lock.
   *
   * @throws StaleTokenError, with reason `superseded`, if Postgres has admitted another holder since; `forgotten`, if
   *   Postgres has no row of the key any more; `other-key`, if a row was written under another key. The handle keeps its
   *   token, so that row refuses it again: `retries` does not run `fn` again, release the handle and take it again.
   * @throws the errors of `$withLock`, and ClosedError after the release.
   */
  $transaction<R>(fn: Work<Tx, R>, options?: TransactionOptions): Promise<R>;
  /** Waits for the running transaction, then releases the lock. Idempotent; never rejects. */
  release(): Promise<void>;
  /**
   * What another process needs to resume the handle. Whoever has it can take over the lock, so keep it as secret as
   * access to the lock.
   */
  toJSON(): HandleState;
}

/** A handle of a permit. */
export interface PermitHandle<Tx> extends LockHandle<Tx> {
  readonly permit: number;
}

/** Waits for the lock and registers its token. */
export function lock<Tx>(parts: Parts, call: LockCall<Tx>): Promise<LockHandle<Tx>> {
  return traced(call.operation ?? '$lock', parts, call, (call) => take(parts, call));
}

async function take<Tx>(parts: Parts, call: LockCall<Tx>): Promise<LockHandle<Tx>> {
  const { keys, options, trace } = call;
  refuseNestedCall(keys, options.nested);
  const deadline = new Deadline(options.waitTime);
  const request = { options, deadline, preopen: undefined };
  const enter = () => parts.room.enter(keys[0] as string, request);
  const first = await (trace ? trace.wait(enter) : enter());
  const turn = await withOthers(first, parts.room, keys, request);
  trace?.had(turn);
  try {
    const tokens = await register(parts, call, turn, deadline);
    parts.room.throwIfClosing(turn.key);
    return opened(parts, call, turn, tokens);
  } catch (error) {
    turn.end();
    trace?.released();
    throw error;
  }
}

/** The handle of a token that is registered: open until it is released. */
export function opened<Tx>(parts: Parts, call: LockCall<Tx>, turn: Turn, tokens: readonly bigint[]): Handle<Tx> {
  const handle = new Handle(parts, call, turn, tokens);
  parts.handles.add(handle);
  return handle;
}

class Handle<Tx> implements LockHandle<Tx> {
  readonly keys: readonly string[];
  readonly permit: number | undefined;
  readonly token: bigint;
  readonly #parts: Parts;
  readonly #defaults: ResolvedLockOptions;
  readonly #turn: Turn;
  readonly #tokens: readonly bigint[];
  readonly #abort = new LazyAbort();
  readonly #user: LeaseUser;
  readonly #call: LockCall<Tx>;
  /** Resolves when the last requested transaction has ended. */
  #last: Promise<void> = Promise.resolve();
  /** Resolves when its leases are transferred, or have had the time for it. Set when it may have been resumed elsewhere. */
  #transfer: Promise<void> | undefined;
  #released: Promise<void> | undefined;
  #touchAt = Number.NEGATIVE_INFINITY;
  /** Why it was released, if that was not its owner. */
  #closedBy: ClosedError | undefined;

  constructor(parts: Parts, call: LockCall<Tx>, turn: Turn, tokens: readonly bigint[]) {
    const { options } = call;
    this.#parts = parts;
    this.#call = call;
    // The caller's signal only ends the waiting for the lock.
    this.#defaults = { ...options, signal: undefined };
    this.#turn = turn;
    this.#tokens = tokens;
    const permit = permitOf(turn.key);
    this.keys = permit === undefined ? turn.keys : Object.freeze([permit.key]);
    this.permit = permit?.permit;
    this.token = tokens.at(-1) as bigint;
    this.#user = { lost: (loss) => this.#onLoss(loss), beat: () => this.#touch() };
    turn.attach(this.#user);
    if (turn.loss) this.#onLoss(turn.loss);
  }

  get key(): string {
    return this.keys[0] as string;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  remaining(): number {
    return this.#released ? 0 : Math.floor(this.#turn.remaining);
  }

  async $transaction<R>(fn: Work<Tx, R>, given: TransactionOptions = {}): Promise<R> {
    checkFunction(fn, '$transaction');
    const options = resolveTransactionOptions(given, this.#defaults);
    refuseNestedCall(this.#call.keys, options.nested);
    if (this.#released) throw this.#closedBy ?? new ClosedError(RELEASED, { key: this.key });
    if (this.#turn.loss) throw this.#turn.loss;
    const before = this.#last;
    const hooks = new CallHooks({ parts: this.#parts, key: this.key, hookErrors: options.hookErrors });
    const call = { ...this.#call, options, trace: undefined };
    const run = traced('handle.$transaction', this.#parts, call, (call) => this.#run(before, fn, call, hooks));
    // Do not chain on the result: each promise would hold the result of the transaction before it. Nor on the hooks, which
    // may begin the next transaction or release the handle.
    this.#last = run.then(nothing, nothing).then(() => before);
    try {
      return await hooks.runAfter(run);
    } catch (error) {
      throw withCaller(error);
    }
  }

  release(): Promise<void> {
    this.#released ??= this.#last.then(() => this.#transfer).then(() => this.#end());
    // Inside a transaction of this handle, waiting for the release would wait for itself. The lock is released when
    // that transaction has ended.
    return holds(this.#call.keys[0] as string) ? Promise.resolve() : this.#released;
  }

  /** Called when the client is being closed. `signal` aborts, so that the work under the lock learns of it. */
  close(): Promise<void> {
    this.#closedBy = new ClosedError(GIVEN_BACK, { key: this.key });
    this.#abort.abort(this.#closedBy);
    return this.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): HandleState {
    this.#turn.show();
    const { keys, holders, leaseTime } = this.#turn;
    return { keys, tokens: this.#tokens.map(String), holders, leaseTime };
  }

  async #run<R>(before: Promise<void>, fn: Work<Tx, R>, call: LockCall<Tx>, hooks: CallHooks): Promise<R> {
    const { options, trace } = call;
    const { waitTime, signal } = options;
    const deadline = new Deadline(waitTime);
    const abort = new LazyAbort();
    const unfollow = abort.follow(signal);
    if ((await within(abort.race(before), waitTime).finally(unfollow)) === OVERDUE) {
      throw new LockTimeoutError(this.key, `${waitTime} ms, because of another transaction of this handle`);
    }
    if (this.#turn.loss) throw this.#turn.loss;
    try {
      return await fencedTransaction<Tx, R>({
        parts: this.#parts,
        database: call.database,
        leases: this.#turn,
        options,
        deadline,
        abort,
        work: workOf({ call, fn, abort, hooks, joins: false }),
        registered: { tokens: this.#tokens },
        notCommitted: (outcome) => hooks.settle(outcome),
        trace,
      });
    } catch (error) {
      // Postgres has admitted another holder, or the handle was resumed elsewhere: the lease is worth nothing any more. The
      // function may have thrown the same error of another handle.
      const isOwn = error instanceof StaleTokenError && this.#tokens.includes(error.token);
      if (isOwn && error.model === undefined) this.#turn.lose(error);
      throw error;
    }
  }

  /**
   * Called at each renewal. Without it, a handle that begins no transaction for a day would lose its key's row to
   * `fenced-lock gc`, and its token would be refused.
   */
  #touch(): void {
    if (now() < this.#touchAt) return;
    this.#touchAt = now() + TOUCH_EVERY;
    const values = [this.#turn.keys, this.#turn.holders, this.#tokens.map(String)].map((all) => JSON.stringify(all));
    this.#call.database.rescue(TOUCH, values).catch(() => {
      this.#touchAt = now() + TOUCH_AGAIN;
    });
  }

  /** Ends the handle: otherwise the callers of this process that wait behind it would wait for ever. */
  #onLoss(loss: LockLostError): void {
    this.#abort.abort(loss);
    const mayBeResumed = loss.cause instanceof StaleTokenError || (loss.reason === 'gone' && this.keys.length > 1);
    if (mayBeResumed) this.#transfer ??= this.#untilTransferred();
    void Promise.all([this.#last, this.#transfer]).then(() => this.#end());
  }

  /**
   * The process that resumed the handle transfers its leases after Postgres has admitted it, and not all in the same moment.
   * Releasing one of them before would pass its key to another caller.
   */
  async #untilTransferred(): Promise<void> {
    const deadline = new Deadline(TRANSFER_TIME);
    while (!deadline.passed && !(await this.#turn.look())) await sleep(TRANSFER_PAUSE);
  }

  #end(): void {
    // The lease may pass to the next caller of this process. Its later loss must not reach this handle.
    this.#turn.detach(this.#user);
    this.#turn.end();
    this.#call.trace?.released();
    this.#parts.handles.delete(this);
  }
}

function nothing(): void {}
