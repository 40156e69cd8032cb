import { turnOfLoop } from '../base/clock.js';
import { HookFailedError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import { runInside, scopes } from '../base/scope.js';
import type { Outcome } from '../transaction/call.js';
import type { DueHook, HeldLock } from './lock.js';

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
