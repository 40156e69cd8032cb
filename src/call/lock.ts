import { turnOfLoop } from '../base/clock.js';
import { ClosedError, type FencedLockError, HookFailedError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import { runInside, scopes } from '../base/scope.js';
import { checkFunction } from '../options/arguments.js';
import type { Outcome } from '../transaction/call.js';

/** The lock, as the caller's function gets it. */
export interface Lock {
  /** The key; of several, the first in sorted order. */
  readonly key: string;
  /** All keys, sorted by their UTF-8 bytes. */
  readonly keys: readonly string[];
  /** Which of the permits of the key this is, from 0 on, for all of the turn; `undefined` for a lock. */
  readonly permit?: number | undefined;
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
  /** `{ keys, token }`, with the token as a string, because JSON has no bigint; and the permit, if it is one. */
  toJSON(): { readonly keys: readonly string[]; readonly permit?: number; readonly token: string };
}

/** The permit, as the function of `$withPermit` gets it. It has no order with the turns of the other permits of its key. */
export interface Permit extends Lock {
  /** Which of the permits it is: 0 to one less than there are. Nobody else has it during the turn. */
  readonly permit: number;
}

/** The function of a call. */
export type Work<Tx, R> = (tx: Tx, lock: Lock) => R | Promise<R>;

export type HookName = 'afterCommit' | 'afterRollback' | 'onUnknown';

/** A hook that is to run. */
interface DueHook {
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
  readonly permit: number | undefined;
  readonly token: bigint;
  readonly #abort: LazyAbort;
  /** The hooks of the function and of the calls that joined it. */
  #hooks: Hook[] | undefined;
  #hasEnded = false;

  constructor(keys: readonly string[], token: bigint, abort: LazyAbort, permit?: number) {
    this.keys = keys;
    this.permit = permit;
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
    const { keys, permit, token } = this;
    return { keys, ...(permit !== undefined && { permit }), token: String(token) };
  }
}

interface CallHooksOptions {
  readonly parts: { readonly hooks: RunningHooks; readonly emit: Emit };
  readonly key: string;
  readonly hookErrors: 'event' | 'throw';
}

/**
 * The hooks of one call. Each belongs to the run of the function that registered it. The outcome of that run decides
 * whether the hook runs. With `retries`, the hooks of the rolled-back runs come first.
 */
export class CallHooks {
  readonly #options: CallHooksOptions;
  #lock: HeldLock | undefined;
  #due: DueHook[] | undefined;

  constructor(options: CallHooksOptions) {
    this.#options = options;
  }

  /** The function begins to run, with this lock. */
  onRun(lock: HeldLock): void {
    this.#lock = lock;
  }

  /** The outcome of the present run of the function is known. The first call for each run counts. */
  settle(outcome: Outcome): void {
    const due = this.#lock?.settle(outcome);
    if (due === undefined || due.length === 0) return;
    this.#due ??= [];
    this.#due.push(...due);
  }

  /**
   * Runs the hooks after the call and resolves to its result. In the caller's async context, outside of the
   * transaction.
   *
   * @throws HookFailedError for a call that has committed, and what the call itself was rejected with.
   */
  async runAfter<R>(call: Promise<R>): Promise<R> {
    const { parts, key, hookErrors } = this.#options;
    let value: R;
    try {
      value = await call;
    } catch (error) {
      // This error tells the outcome of the transaction. No error of a hook may hide it.
      if (this.#due) await parts.hooks.run(this.#due, key, parts.emit);
      throw error;
    }
    this.settle({ type: 'committed' });
    if (this.#due === undefined) return value;
    const errors = await parts.hooks.run(this.#due, key, hookErrors === 'throw' ? undefined : parts.emit);
    if (errors.length > 0) throw new HookFailedError(key, value, errors);
    return value;
  }
}

/** The hooks of one client that run now: closing it waits for them. */
export class RunningHooks {
  readonly #running = new Set<Promise<unknown>>();

  /**
   * Runs every hook, also after one that failed, in a scope of their own. By it, `idle` recognizes a hook that closes the
   * client. Errors go to `emit`. Without it, resolves to them.
   */
  run(hooks: readonly DueHook[], key: string, emit: Emit | undefined): Promise<readonly unknown[]> {
    const running = runInside({ hook: this }, () => runEach(hooks, key, emit));
    this.#running.add(running);
    const over = () => this.#running.delete(running);
    running.then(over, over);
    return running;
  }

  /** Waits until no hook runs. Resolves to whether it waited. Called by a hook, it does not wait. */
  async idle(): Promise<boolean> {
    if (this.#running.size === 0 || scopes().some(({ inside }) => inside.hook === this)) return false;
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    return true;
  }
}

async function runEach(hooks: readonly DueHook[], key: string, emit: Emit | undefined): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  // The next caller of this process begins first, because a hook may block the event loop.
  await turnOfLoop();
  for (const hook of hooks) {
    try {
      await hook.run();
    } catch (error) {
      if (emit === undefined) errors.push(error);
      else emit({ type: 'hook-failed', key, hook: hook.name, error });
    }
  }
  return errors;
}
