import { type ClosedError, givenBackHandle, releasedHandle, StaleTokenError } from '../../base/errors.js';
import { findJoinable, holds } from '../../base/held-keys.js';
import type { LockHandle } from '../../call/handle.js';
import type { Work } from '../../call/lock.js';
import type { HandleState, ResolvedLockOptions, TransactionOptions } from '../../options/options.js';
import { checkWork, resolveTransactionOptions } from '../../options/validate-call.js';
import type { FakeTurn } from './turns.js';

/** What a handle has of the locks that made it. */
export interface HandleMeans {
  readonly options: ResolvedLockOptions;
  readonly token: bigint;
  /** `result`: with the hooks behind it, which may begin the next transaction. */
  run<R>(options: ResolvedLockOptions, work: Work<object, R>): { transaction: Promise<R>; result: Promise<R> };
  released(handle: FakeHandle): void;
}

/** The handle of a fake lock. */
export class FakeHandle implements LockHandle<object> {
  readonly turn: FakeTurn;
  readonly #means: HandleMeans;
  #last: Promise<unknown> = Promise.resolve();
  #released: Promise<void> | undefined;
  /** Why it was released, if that was not its owner. */
  #closedBy: ClosedError | undefined;

  constructor(turn: FakeTurn, means: HandleMeans) {
    this.turn = turn;
    this.#means = means;
  }

  get key(): string {
    return this.turn.keys[0] as string;
  }

  get keys(): readonly string[] {
    return this.turn.keys;
  }

  get token(): bigint {
    return this.#means.token;
  }

  get signal(): AbortSignal {
    return this.turn.lost.signal;
  }

  remaining(): number {
    return this.#released || this.turn.lost.aborted ? 0 : this.#means.options.leaseTime;
  }

  async $transaction<R>(fn: Work<object, R>, given: TransactionOptions = {}): Promise<R> {
    checkWork(fn);
    const options = resolveTransactionOptions(given, { ...this.#means.options, signal: undefined });
    findJoinable(this.keys, options.nested, () => false);
    if (this.#released) throw this.#closedBy ?? releasedHandle(this.key);
    this.turn.lost.throwIfAborted();
    const run = this.#last.then(() => {
      this.turn.lost.throwIfAborted();
      return this.#means.run(options, fn);
    });
    this.#last = run.then(({ transaction }) => transaction).catch(() => {});
    return await (await run).result;
  }

  release(): Promise<void> {
    this.#released ??= this.#last.then(() => {
      this.turn.release();
      this.#means.released(this);
    });
    return holds(this.key) ? Promise.resolve() : this.#released;
  }

  /** The client is closed: the work under the lock learns of it. */
  close(): Promise<void> {
    this.#closedBy = givenBackHandle(this.key);
    this.turn.lost.abort(this.#closedBy);
    return this.release();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): HandleState {
    const { leaseTime } = this.#means.options;
    return { keys: this.keys, tokens: this.keys.map(() => String(this.token)), holders: this.turn.holders, leaseTime };
  }

  /** Another handle goes on from here. */
  superseded(): StaleTokenError {
    return new StaleTokenError(this.key, this.token, undefined, { reason: 'superseded', ofHandle: true });
  }
}
