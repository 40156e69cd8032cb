import { AsyncLocalStorage } from 'node:async_hooks';
import { inProcess, type Timer } from './clock.js';
import { processWide } from './process-wide.js';

/** What an async context may belong to. */
interface ScopeProperties {
  /** The ticket of a transaction that needs a fenced connection. */
  readonly ticket: unknown;
  /** The keys that a lock's function holds. */
  readonly held: unknown;
  /** The hooks of a call that run. */
  readonly hook: unknown;
}

/** An async context, and the one around it. */
export class Scope {
  #outer: Scope | undefined;
  /** Whether the scope's action has settled. Work that was not awaited may go on, but does not belong to the scope any more. */
  ended = false;
  inside: Partial<ScopeProperties>;

  constructor(inside: Partial<ScopeProperties>) {
    this.#outer = shared.storage.getStore();
    // Reading `outer` removes ended scopes from the chain, at every level.
    let around = this.outer;
    while (around !== undefined) around = around.outer;
    this.inside = inside;
  }

  /**
   * Skips scopes that have ended. Otherwise the chain would grow without end if each call begins in work that the
   * previous one did not await.
   */
  get outer(): Scope | undefined {
    while (this.#outer?.ended) this.#outer = this.#outer.outer;
    return this.#outer;
  }

  /** Runs `action` in this scope. */
  run<R>(action: () => R): R {
    return shared.storage.run(this, action);
  }
}

/** How long after the last scope has ended the storage is disabled; milliseconds. */
const IDLE_TIME = 1_000;

/**
 * The one storage of this package. Before Node 24, AsyncLocalStorage uses hooks, and each storage makes every promise
 * of the process more expensive. A pool may have been fenced by another copy of this package, or by this one before a dev
 * server's reload.
 *
 * Sealed: Jest takes apart what a test file leaves on `globalThis`, and our timer may still come behind that.
 */
const shared = processWide('scope', () =>
  Object.seal<SharedStorage>({ storage: new AsyncLocalStorage(), active: 0, idle: undefined }),
);
interface SharedStorage {
  readonly storage: AsyncLocalStorage<Scope>;
  /** The number of scopes that have begun and not ended. */
  active: number;
  idle: Timer | undefined;
}

/** Runs `action` in a scope that ends when its promise settles. */
export function runInside<R>(inside: Partial<ScopeProperties>, action: () => Promise<R>): Promise<R> {
  const scope = new Scope(inside);
  shared.active++;
  const end = () => {
    scope.ended = true;
    // Timers and sockets keep the async context that they were created in, so drop the references.
    scope.inside = {};
    shared.active--;
    // With the storage disabled, the application's own queries do not pay for it between locks.
    if (shared.active === 0) shared.idle ??= inProcess(IDLE_TIME, disableWhenIdle).unref();
  };
  try {
    const settled = scope.run(action);
    settled.then(end, end);
    return settled;
  } catch (error) {
    end();
    throw error;
  }
}

function disableWhenIdle(): void {
  shared.idle = undefined;
  if (shared.active === 0) shared.storage.disable();
}

/** The nearest scope that has this property. */
export function scopeWith(name: keyof ScopeProperties): Scope | undefined {
  let scope = shared.storage.getStore();
  while (scope !== undefined && scope.inside[name] === undefined) scope = scope.outer;
  return scope;
}
