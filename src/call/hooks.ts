import { turnOfLoop } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import { runInside, scopeWith } from '../base/scope.js';

export type HookName = 'afterCommit' | 'afterRollback' | 'onUnknown';

/** A hook that is to run. */
export interface DueHook {
  readonly name: HookName;
  run(): unknown;
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
    for (let scope = scopeWith('hook'); scope !== undefined; scope = scope.outer) {
      if (scope.inside.hook === this) return false;
    }
    if (this.#running.size === 0) return false;
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
