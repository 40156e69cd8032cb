import { ClosedError, type FencedLockError } from '../base/errors.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import { checkFunction } from '../options/arguments.js';
import type { Outcome } from '../transaction/call.js';

/** The lock, as the caller's function gets it. */
export interface Lock {
  /** The key; of several, the first in sorted order. */
  readonly key: string;
  /** All keys, sorted by their UTF-8 bytes. */
  readonly keys: readonly string[];
  /** The fencing token of this turn. It is higher than the tokens of all earlier turns of these keys. */
  readonly token: bigint;
  /** Aborts when the work must end early: the lease is lost, the timeout is over, or the caller's signal aborts. */
  readonly signal: AbortSignal;
  /**
   * Has `fn` run when the transaction is known to have committed, after the release. Use it for a mail or a message that
   * must not go out for work that is rolled back. Hooks run one after the other, in the order in which they were
   * registered; the call settles when they have ended. They run outside of the transaction, and hold nothing. They are
   * not stored: a process that ends before they have run takes them along.
   *
   * @throws ClosedError if the function of the lock has ended.
   */
  afterCommit(fn: () => unknown): void;
  /** The same for a transaction that is known to have been rolled back. `error` is what it was rolled back for. */
  afterRollback(fn: (error: unknown) => unknown): void;
  /**
   * The same where nobody can say whether it has committed: the call rejects with `error`, a `CommitUnknownError`. Also
   * where SQL of the function has committed a part of its transaction (`InsideTransactionError`).
   */
  onUnknown(fn: (error: FencedLockError) => unknown): void;
  /** `{ keys, token }`, with the token as a string, because JSON has no bigint. */
  toJSON(): { readonly keys: readonly string[]; readonly token: string };
}

/** The function of a call. */
export type Work<Tx, R> = (tx: Tx, lock: Lock) => R | Promise<R>;

export type HookName = 'afterCommit' | 'afterRollback' | 'onUnknown';

/** A hook that is to run. */
export interface DueHook {
  readonly name: HookName;
  run(): unknown;
}

const HOOK_OF: Readonly<Record<Outcome['type'], HookName>> = {
  committed: 'afterCommit',
  'rolled-back': 'afterRollback',
  unknown: 'onUnknown',
};

interface Hook {
  readonly name: HookName;
  readonly fn: (error: never) => unknown;
}

/** The lock of one transaction. */
export class HeldLock implements Lock {
  readonly keys: readonly string[];
  readonly token: bigint;
  readonly #abort: LazyAbort;
  /** The hooks of the function and of the calls that joined it. */
  #hooks: Hook[] | undefined;
  #hasEnded = false;

  constructor(keys: readonly string[], token: bigint, abort: LazyAbort) {
    this.keys = keys;
    this.token = token;
    this.#abort = abort;
  }

  get key() {
    return this.keys[0] as string;
  }

  get signal() {
    return this.#abort.signal;
  }

  afterCommit(fn: () => unknown): void {
    this.#register('afterCommit', fn);
  }

  afterRollback(fn: (error: unknown) => unknown): void {
    this.#register('afterRollback', fn);
  }

  onUnknown(fn: (error: FencedLockError) => unknown): void {
    this.#register('onUnknown', fn);
  }

  /** Called when the function has ended. Code that it did not await can register no hook any more. */
  end(): void {
    this.#hasEnded = true;
  }

  /** The hooks that are to run for this outcome. */
  settle(outcome: Outcome): DueHook[] | undefined {
    this.#hasEnded = true;
    const name = HOOK_OF[outcome.type];
    const due = this.#hooks?.filter((hook) => hook.name === name);
    this.#hooks = undefined;
    const given = outcome.type === 'committed' ? [] : [outcome.error];
    return due?.map(({ fn }) => ({ name, run: () => (fn as (...given: unknown[]) => unknown)(...given) }));
  }

  #register(name: HookName, fn: Hook['fn']): void {
    checkFunction(fn);
    if (this.#hasEnded) {
      throw new ClosedError(
        `\`${name}\` was called when the function of the lock had ended, so its hook would never run. Call it inside ` +
          'the function, and await what calls it.',
        { key: this.key },
      );
    }
    this.#hooks ??= [];
    this.#hooks.push({ name, fn });
  }

  toJSON() {
    return { keys: this.keys, token: String(this.token) };
  }
}
