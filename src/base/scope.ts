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
  /** The transaction of a lock, which begins where another library begins one. */
  readonly begins: unknown;
}

/** An async context. */
export interface Scope {
  inside: Partial<ScopeProperties>;
  /** Those that it is in, the innermost first. */
  around: readonly Scope[];
  /** Whether its action has settled. Work that was not awaited may go on, but does not belong to it any more. */
  ended: boolean;
}

/**
 * The contexts that the present code is in, the innermost first. Those that have ended are left out: otherwise they would be kept
 * without end if each call begins in work that the previous one did not await.
 */
export function scopes(): readonly Scope[] {
  const scope = shared.storage.getStore();
  return scope === undefined ? [] : living([scope, ...scope.around]);
}

function living(scopes: readonly Scope[]): readonly Scope[] {
  return scopes.filter(({ ended }) => !ended);
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
  const scope: Scope = { inside, around: scopes(), ended: false };
  shared.active++;
  const end = () => {
    // Timers and sockets keep the async context that they were created in, so drop the references.
    Object.assign(scope, { inside: {}, around: living(scope.around), ended: true });
    shared.active--;
    // With the storage disabled, the application's own queries do not pay for it between locks.
    if (shared.active === 0) shared.idle ??= inProcess(IDLE_TIME, disableWhenIdle).unref();
  };
  try {
    const settled = shared.storage.run(scope, action);
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
