import { type ClosedError, givenBackHandle, releasedHandle } from '../../../base/errors.js';
import { holds, refuseNestedCall } from '../../../base/held-keys.js';
import { LazyAbort } from '../../../base/lazy-abort.js';
import type { LockHandle } from '../../../call/handle.js';
import type { CallHooks } from '../../../call/hooks.js';
import type { Work } from '../../../call/lock.js';
import type { HandleState, ResolvedLockOptions, TransactionOptions } from '../../../options/options.js';
import { checkWork, resolveTransactionOptions } from '../../../options/validate-call.js';
import type { CallRecord } from './calls.js';
import type { FakeLockCall, FakeParts } from './parts.js';
import { fakeTransaction } from './transaction.js';
import type { FakeTurn } from './turns.js';

/** `$lock` of a fake. */
export async function lock(parts: FakeParts, call: FakeLockCall): Promise<LockHandle<object>> {
  const { method, keys, options } = call;
  refuseNestedCall(keys, options.nested);
  const record = parts.record(method, keys);
  const plan = parts.script.take(keys, 'lock');
  const { waitTime, signal } = options;
  return await parts.acquire(record, { plan, waitTime, signal }, (turn) => {
    const { tokens, commit } = parts.admissions.draw(turn);
    commit();
    return new FakeHandle(parts, call, { turn, tokens, record });
  });
}

/** `$resumeLock` of a fake: the handle that the state was made from is lost by that. */
export async function resume(parts: FakeParts, call: FakeLockCall, state: HandleState): Promise<LockHandle<object>> {
  const { keys, options } = call;
  const { holders, leaseTime } = state;
  refuseNestedCall(keys, options.nested);
  const record = parts.record('$resumeLock', keys);
  const plan = parts.script.take(keys, 'lock');
  const { waitTime, signal } = options;
  // Behind the transaction of the handle that runs, and before those that wait: they have not asked Postgres yet.
  return await parts.acquire(record, { from: parts.rows, plan, waitTime, signal, first: true }, (rows) => {
    const tokens = state.tokens.map(BigInt);
    parts.admissions.check({ keys, tokens, holders });
    const turn = parts.turns.takeOver(keys, holders);
    parts.admissions.again({ keys, tokens, holders: turn.holders }).commit();
    rows.release();
    return new FakeHandle(parts, { ...call, options: { ...options, leaseTime } }, { turn, tokens, record });
  });
}

/** What a handle has. */
interface Held {
  readonly turn: FakeTurn;
  readonly tokens: readonly bigint[];
  readonly record: CallRecord;
}

/** The handle of a fake lock. */
class FakeHandle implements LockHandle<object> {
  readonly #parts: FakeParts;
  readonly #client: object;
  readonly #options: ResolvedLockOptions;
  readonly #turn: FakeTurn;
  readonly #tokens: readonly bigint[];
  readonly #record: CallRecord;
  readonly #abort = new LazyAbort();
  /** Resolves when the last requested transaction has ended. */
  #last: Promise<void> = Promise.resolve();
  #released: Promise<void> | undefined;
  /** Why it was released, if that was not its owner. */
  #closedBy: ClosedError | undefined;

  constructor(parts: FakeParts, { client, options }: FakeLockCall, { turn, tokens, record }: Held) {
    this.#parts = parts;
    this.#client = client;
    // The caller's signal only ends the waiting for the lock.
    this.#options = { ...options, signal: undefined };
    this.#turn = turn;
    this.#tokens = tokens;
    this.#record = record;
    record.begin(this.token);
    record.end('held');
    parts.handles.add(this);
    turn.lost.onAbort(() => this.#onLoss());
  }

  get key(): string {
    return this.keys[0] as string;
  }

  get keys(): readonly string[] {
    return this.#turn.keys;
  }

  get token(): bigint {
    return this.#tokens.at(-1) as bigint;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  remaining(): number {
    return this.#released || this.#turn.lost.aborted ? 0 : this.#options.leaseTime;
  }

  async $transaction<R>(fn: Work<object, R>, given: TransactionOptions = {}): Promise<R> {
    checkWork(fn, '$transaction');
    const options = resolveTransactionOptions(given, this.#options);
    refuseNestedCall(this.keys, options.nested);
    if (this.#released) throw this.#closedBy ?? releasedHandle(this.key);
    this.#turn.lost.throwIfAborted();
    const before = this.#last;
    const hooks = this.#parts.hooksOf(this.keys, options);
    const run = this.#run(fn, options, hooks);
    // Not behind the hooks, which may begin the next transaction or release the handle.
    this.#last = run.then(nothing, nothing).then(() => before);
    return await hooks.runAfter(run);
  }

  release(): Promise<void> {
    this.#released ??= this.#last.then(() => this.#end());
    return holds(this.key) ? Promise.resolve() : this.#released;
  }

  /** The client is being closed. `signal` aborts, so that the work under the lock learns of it. */
  close(): Promise<void> {
    this.#closedBy = givenBackHandle(this.key);
    this.#abort.abort(this.#closedBy);
    return this.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): HandleState {
    const { keys, holders } = this.#turn;
    return { keys, tokens: this.#tokens.map(String), holders, leaseTime: this.#options.leaseTime };
  }

  async #run<R>(work: Work<object, R>, options: ResolvedLockOptions, hooks: CallHooks): Promise<R> {
    const { rows, script, admissions, base } = this.#parts;
    const [turn, keys, tokens] = [this.#turn, this.keys, this.#tokens];
    const record = this.#parts.record('$transaction', keys);
    const { waitTime, signal } = options;
    const because = 'because of another transaction of this handle';
    const own = await this.#parts.acquire(record, { from: rows, waitTime, signal, because }, (behind) => {
      turn.lost.throwIfAborted();
      return behind;
    });
    try {
      const plan = script.take(keys, 'work');
      if (plan?.unsaid) {
        record.end('not acquired', plan.unsaid);
        throw plan.unsaid;
      }
      const admit = () => admissions.again({ keys, tokens, holders: turn.holders });
      const of = { owner: this.#client, joins: false, client: base };
      return await fakeTransaction({ ...of, turn, plan, options, record, hooks, admit }, work);
    } finally {
      own.release();
    }
  }

  #onLoss(): void {
    const loss = this.#turn.lost.reason;
    this.#abort.abort(loss);
    this.#record.end('lost', loss);
    void this.#last.then(() => this.#end());
  }

  #end(): void {
    this.#turn.release();
    this.#parts.handles.delete(this);
    if (!this.#turn.lost.aborted) this.#record.end('released');
  }
}

function nothing(): void {}
