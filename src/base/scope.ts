import { AsyncLocalStorage } from 'node:async_hooks';
import { after, type Timer } from './clock.js';

/** What an async context may be inside of. */
interface Inside {
  /** The right of a transaction to a fenced connection. */
  readonly ticket: unknown;
  /** What the lock's function holds. */
  readonly held: unknown;
  /** A write of the base client, on its way. */
  readonly write: unknown;
  /** An operation of the fence's own, on its way. */
  readonly own: unknown;
  /** The hooks of a call that run. */
  readonly hook: unknown;
}

/** One async context, and the one around it. */
export class Scope {
  #outer: Scope | undefined;
  /** What was left behind in it may go on, and is inside of nothing any more. */
  ended = false;
  inside: { -readonly [Name in keyof Inside]?: Inside[Name] };

  constructor(inside: Partial<Inside>) {
    this.#outer = shared.storage.getStore();
    // Each `outer` drops those that have ended, further out as well.
    let around = this.outer;
    while (around !== undefined) around = around.outer;
    this.inside = inside;
  }

  /** Those that have ended are not kept: a chain of calls that each begin in what the one before left behind would grow. */
  get outer(): Scope | undefined {
    while (this.#outer?.ended) this.#outer = this.#outer.outer;
    return this.#outer;
  }

  /** Runs `action` in it. */
  run<R>(action: () => R): R {
    return shared.storage.run(this, action);
  }
}

/** How long nobody has been in a scope before async contexts are not followed any more; ms. */
const IDLE_TIME = 1_000;

/**
 * One storage for everything: before Node 24 async contexts are followed by hooks, and each storage that has been used adds to the
 * price of every promise of the process. On `globalThis`, because a pool may have been fenced by another copy of this
 * package, or by the same one before a dev server's reload.
 */
const SLOT = Symbol.for('prisma-extension-fenced-lock.scope');
interface Shared {
  readonly storage: AsyncLocalStorage<Scope>;
  /** Scopes that have begun and not ended. */
  active: number;
  idle: Timer | undefined;
}
const slots = globalThis as { [SLOT]?: Shared };
// Sealed: Jest takes apart what a test file leaves on `globalThis`, and our timer may still come behind that.
slots[SLOT] ??= Object.seal({ storage: new AsyncLocalStorage<Scope>(), active: 0, idle: undefined });
const shared = slots[SLOT];

/** Runs `action` in a scope that ends when its promise settles. */
export function runInside<R>(inside: Partial<Inside>, action: () => Promise<R>): Promise<R> {
  const scope = new Scope(inside);
  shared.active++;
  const end = () => {
    scope.ended = true;
    // Timers and sockets keep the async context that they were made in.
    scope.inside = {};
    shared.active--;
    // An application's own queries between its locks cost what they cost without them.
    if (shared.active === 0) shared.idle ??= after(IDLE_TIME, rest).unref();
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

function rest(): void {
  shared.idle = undefined;
  if (shared.active === 0) shared.storage.disable();
}

/** The nearest scope that is inside of this. */
export function scopeWith(name: keyof Inside): Scope | undefined {
  let scope = shared.storage.getStore();
  while (scope !== undefined && scope.inside[name] === undefined) scope = scope.outer;
  return scope;
}
