import { turnOfLoop } from '../base/clock.js';
import { HookFailedError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import { runInside, scopeWith } from '../base/scope.js';
import type { Outcome } from '../transaction/call.js';
import type { DueHook, HeldLock } from './lock.js';

/** The hooks of one client that run now: closing it waits for them. */
export class RunningHooks {
  readonly #running = new Set<Promise<unknown>>();

  /** Runs `hooks` in a scope of their own. By it, `idle` recognizes a hook that closes the client. */
  run<R>(hooks: () => Promise<R>): Promise<R> {
    const running = runInside({ hook: this }, hooks);
    this.#running.add(running);
    const over = () => this.#running.delete(running);
    running.then(over, over);
    return running;
  }

  /** Waits until no hook runs. Resolves to whether it waited. Called by a hook, it does not wait. */
  async idle(): Promise<boolean> {
    for (let scope = scopeWith('hook'); scope !== undefined; scope = scope.outer) {
      if (scope.inside.hook === this) return false;
    }
    if (this.#running.size === 0) return false;
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    return true;
  }
}

interface CallHooksOptions {
  readonly running: RunningHooks;
  readonly emit: Emit;
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
  begin(lock: HeldLock): void {
    this.#lock = lock;
  }

  /** The outcome of the present run of the function is known. */
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
  async follow<R>(call: Promise<R>): Promise<R> {
    let value: R;
    try {
      value = await call;
    } catch (error) {
      // This error tells the outcome of the transaction. No error of a hook may hide it.
      if (this.#due) await this.#run(this.#due, false);
      throw error;
    }
    if (this.#due === undefined) return value;
    const { key, hookErrors } = this.#options;
    const errors = await this.#run(this.#due, hookErrors === 'throw');
    if (errors.length > 0) throw new HookFailedError(key, value, errors);
    return value;
  }

  /** Runs every hook, also after one that failed. Resolves to the errors that the call must throw. */
  async #run(due: readonly DueHook[], throws: boolean): Promise<readonly unknown[]> {
    const { running, emit, key } = this.#options;
    const errors: unknown[] = [];
    await running.run(async () => {
      // The release is sent at the end of this event loop turn. It goes first, because a hook may block the loop.
      await turnOfLoop();
      for (const hook of due) {
        try {
          await hook.run();
        } catch (error) {
          if (throws) errors.push(error);
          else emit({ type: 'hook-failed', key, hook: hook.name, error });
        }
      }
    });
    return errors;
  }
}
