import { randomUUID } from 'node:crypto';
import { Deadline, OVERDUE, sleep, unlessAborted, within } from '../base/clock.js';
import { ClosedError, LockLostError, LockTimeoutError, StaleTokenError } from '../base/errors.js';
import { findJoinable, holding, holds } from '../base/held-keys.js';
import { LazyAbort } from '../base/lazy-abort.js';
import type { Database } from '../database/database.js';
import { LeaseSet, withOthers } from '../lease/lease-set.js';
import type { Turn } from '../lease/queue/turn.js';
import type { HandleState, ResolvedLockOptions, TransactionOptions } from '../options/options.js';
import { checkWork } from '../options/validate-arguments.js';
import { resolveTransactionOptions } from '../options/validate-options.js';
import type { Outcome, Registered } from '../transaction/call.js';
import { refuseUnsent } from '../transaction/unsent.js';
import { CallHooks } from './hooks.js';
import { HeldLock, type HookName, type Lock, type Work } from './lock.js';
import type { LockCall } from './lock-request.js';
import type { Parts } from './parts.js';
import { runUnderLeases, type TransactionRequest } from './run-under-leases.js';

/** How long a lease that Postgres says is somebody else's is left to that one, and how often to look; ms. */
const TRANSFER_TIME = 1_000;
const TRANSFER_PAUSE = 50;

/**
 * A lock that is held until it is released, for work that is more than one transaction. Its token was registered in
 * Postgres, for good, before anybody saw it, so other systems may be given it, to refuse lower ones.
 */
export interface LockHandle<Tx> extends Omit<Lock, 'toJSON' | HookName>, AsyncDisposable {
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal;
  /** Milliseconds for which the lease still stands, renewals aside; 0 once it is lost or released. */
  remaining(): number;
  /**
   * Runs `fn` in a transaction that Postgres admits under this handle's token. Those of one handle run one after the
   * other. Hooks of the lock that `fn` gets run when its transaction has ended, while the handle still has the lock.
   *
   * @throws StaleTokenError, with reason `superseded`, if somebody else has been admitted since; `forgotten`, if Postgres has
   *   no row of the key any more.
   * @throws as `$withLock`, and ClosedError after the release.
   */
  $transaction<R>(fn: Work<Tx, R>, options?: TransactionOptions): Promise<R>;
  /** Waits for the transaction that runs, then gives the lock back. Idempotent; never rejects. */
  release(): Promise<void>;
  /** What another process needs to resume it. Whoever has it can take the lock over: it is as secret as the lock. */
  toJSON(): HandleState;
}

/** Waits for the lock, and registers its token. */
export async function lock<Tx>(parts: Parts, call: LockCall<Tx>): Promise<LockHandle<Tx>> {
  const { keys, options } = call;
  const { waitTime, leaseTime, renew, signal } = options;
  findJoinable(keys, options.nested, () => false);
  const deadline = new Deadline(waitTime);
  const request = { leaseTime, renew, deadline, waitTime, signal, mayShare: false };
  const first = await parts.room.enter(keys[0] as string, request);
  const leases = await withOthers(first, parts.room, keys, request);
  try {
    const tokens = await register(parts, call, leases, deadline, {});
    parts.room.throwIfClosing(leases.key);
    return parts.handles.add(new Handle(parts, call, leases, tokens));
  } catch (error) {
    leases.release();
    throw error;
  }
}

/** Takes over a lock from the handle that `state` was made from, which is lost by that. */
export async function resume<Tx>(
  parts: Parts,
  call: LockCall<Tx>,
  { tokens, holders, leaseTime }: HandleState,
): Promise<LockHandle<Tx>> {
  const { room } = parts;
  const { keys, options } = call;
  findJoinable(keys, options.nested, () => false);
  const successors = keys.map(() => randomUUID());
  // Postgres first: from here on the old handle writes nothing, whatever becomes of Redis.
  const none = {
    shared: false,
    age: Number.POSITIVE_INFINITY,
    loss: undefined,
    look: async () => {},
    attach: () => () => {},
  };
  const old = { ...none, keys, key: keys[0] as string, holders, leaseTime };
  const registered = { tokens: tokens.map(BigInt), successors };
  const deadline = new Deadline(options.waitTime);
  const turns: Turn[] = [];
  room.throwIfClosing(old.key);
  const done = room.begin();
  try {
    const kept = await register(parts, call, old, deadline, registered);
    try {
      for (const [index, key] of keys.entries()) {
        const claim = { key, holder: holders[index] as string, leaseTime };
        turns.push(await room.takeOver(claim, successors[index] as string, options.renew, deadline));
      }
      room.throwIfClosing(old.key);
      return parts.handles.add(new Handle(parts, call, new LeaseSet(turns), kept));
    } catch (error) {
      for (const turn of turns) turn.end();
      // Nothing has been taken over: the old handle, and its state, are to be good again.
      if (turns.length === 0 && !(error instanceof LockLostError)) {
        const back = { tokens: registered.tokens, successors: holders };
        const own = { ...old, holders: successors };
        await register(parts, call, own, new Deadline(options.waitTime), back, true).catch(() => {});
      }
      throw error;
    }
  } finally {
    done();
  }
}

/** A transaction that does nothing but write its tokens, or their new holders, into the keys' rows. */
async function register<Tx>(
  parts: Parts,
  { database, options }: LockCall<Tx>,
  leases: TransactionRequest<Tx, unknown>['leases'],
  deadline: Deadline,
  registered: Registered,
  whileClosing = false,
): Promise<readonly bigint[]> {
  const request = {
    database,
    leases,
    options: { ...options, retries: 0, isolationLevel: undefined },
    deadline,
    registered: { ...registered, durable: true },
    whileClosing,
  };
  return await runUnderLeases(parts, request, new LazyAbort(), async (_, { tokens }) => tokens);
}

class Handle<Tx> implements LockHandle<Tx> {
  readonly keys: readonly string[];
  readonly token: bigint;
  readonly #parts: Parts;
  readonly #database: Database<Tx>;
  readonly #defaults: ResolvedLockOptions;
  readonly #leases: LeaseSet;
  readonly #tokens: readonly bigint[];
  readonly #abort = new LazyAbort();
  readonly #detach: () => void;
  /** Ends with the last transaction that was asked for. */
  #last: Promise<void> = Promise.resolve();
  #released: Promise<void> | undefined;

  constructor(parts: Parts, { database, options }: LockCall<Tx>, leases: LeaseSet, tokens: readonly bigint[]) {
    this.#parts = parts;
    this.#database = database;
    // The signal was for the waiting.
    this.#defaults = { ...options, signal: undefined };
    this.#leases = leases;
    this.#tokens = tokens;
    this.keys = leases.keys;
    this.token = tokens.at(-1) as bigint;
    const beat = () => parts.handles.beat(database.rescue);
    this.#detach = leases.attach({ lost: (loss) => this.#onLoss(loss), beat });
    if (leases.loss) this.#onLoss(leases.loss);
  }

  get key(): string {
    return this.#leases.key;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  remaining(): number {
    return this.#released ? 0 : this.#leases.remaining;
  }

  async $transaction<R>(fn: Work<Tx, R>, given: TransactionOptions = {}): Promise<R> {
    checkWork(fn);
    const options = resolveTransactionOptions(given, this.#defaults);
    findJoinable(this.keys, options.nested, () => false);
    if (this.#released) throw this.#closed();
    if (this.#leases.loss) throw this.#leases.loss;
    const before = this.#last;
    const { hooks: running, emit } = this.#parts;
    const hooks = new CallHooks({ running, emit, key: this.key, hookErrors: options.hookErrors });
    const run = this.#run(before, fn, options, hooks);
    // Not what it resolves to: each would hold the result of the one before it. And not its hooks, which may begin the
    // next transaction, or release the handle.
    this.#last = run.then(nothing, nothing).then(() => before);
    return await hooks.follow(run);
  }

  release(): Promise<void> {
    this.#released ??= this.#last.then(() => this.#end());
    // Inside its own transaction it would wait for itself; there it is released when that has ended.
    return holds(this.key) ? Promise.resolve() : this.#released;
  }

  /** The client is being closed: whoever works by this lock has to know. */
  close(): Promise<void> {
    this.#abort.abort(new ClosedError('The client was closed, and this lock was given back.', { key: this.key }));
    return this.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): HandleState {
    const { holders, leaseTime } = this.#leases;
    return { keys: this.keys, tokens: this.#tokens.map(String), holders, leaseTime };
  }

  async #run<R>(before: Promise<void>, fn: Work<Tx, R>, options: ResolvedLockOptions, hooks: CallHooks): Promise<R> {
    const { waitTime, signal } = options;
    const deadline = new Deadline(waitTime);
    if ((await within(unlessAborted(before, signal), waitTime)) === OVERDUE) {
      throw new LockTimeoutError(this.key, `${waitTime} ms, because of another transaction of this handle`);
    }
    if (this.#leases.loss) throw this.#leases.loss;
    const abort = new LazyAbort();
    const request = {
      database: this.#database,
      leases: this.#leases,
      options,
      deadline,
      registered: { tokens: this.#tokens },
      settled: (outcome: Outcome) => hooks.settle(outcome),
    };
    const work = async (tx: Tx) => {
      const held = new HeldLock(this.keys, this.token, abort);
      hooks.begin(held);
      try {
        const value = await holding(this.keys, undefined, () => fn(tx, held));
        refuseUnsent(this.#database, tx, this.key);
        return value;
      } finally {
        held.end();
      }
    };
    try {
      return await runUnderLeases(this.#parts, request, abort, work);
    } catch (error) {
      // Postgres knows better than the lease: somebody has been admitted since, or has resumed this handle.
      if (error instanceof StaleTokenError && error.model === undefined) this.#leases.lose(error);
      throw error;
    }
  }

  /** Nobody gives back what is lost, so the callers behind it would wait for ever. */
  #onLoss(loss: LockLostError): void {
    this.#abort.abort(loss);
    const resumed = loss.cause instanceof StaleTokenError ? this.#untilTransferred() : undefined;
    void Promise.all([this.#last, resumed]).then(() => this.#end());
  }

  /** Who has resumed it has Postgres's word, and the lease is transferred next: not if we had given it back. */
  async #untilTransferred(): Promise<void> {
    const deadline = new Deadline(TRANSFER_TIME);
    while (!deadline.passed && !(await this.#leases.look())) await sleep(TRANSFER_PAUSE);
  }

  #end(): void {
    // The next caller of this process may have the very same lease, and what becomes of it then is not ours.
    this.#detach();
    this.#leases.release();
    this.#parts.handles.delete(this);
  }

  #closed(): ClosedError {
    return new ClosedError('This lock was released, so it cannot begin a transaction any more.', { key: this.key });
  }
}

function nothing(): void {}
