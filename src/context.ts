import { AsyncLocalStorage } from 'node:async_hooks';
import { NestedError, ReentryError } from './base/errors.js';

/** What one async context holds; it ends with the lock's function, though what that left behind may go on. */
interface Context {
  readonly key: string;
  readonly outer: Context | undefined;
  ended: boolean;
}

/** On `globalThis`, so that a second copy of this package, or a dev server's reload, does not lose sight of it. */
const SLOT = Symbol.for('prisma-extension-fenced-lock.context');
const slots = globalThis as { [SLOT]?: AsyncLocalStorage<Context> };
slots[SLOT] ??= new AsyncLocalStorage<Context>();
const contexts = slots[SLOT];

/**
 * Refuses a call that would wait for itself, or for others while it keeps them waiting: the outer lock holds a
 * connection meanwhile, and as many such calls as the pool has connections hang it.
 *
 * @throws ReentryError, NestedError
 */
export function checkContext(key: string, nested: 'throw' | 'allow'): void {
  for (let context = contexts.getStore(); context !== undefined; context = context.outer) {
    if (context.ended) continue;
    if (context.key === key) throw new ReentryError(key);
    if (nested === 'throw') throw new NestedError(key, context.key);
  }
}

/** The key that the present async context holds, if it holds one. */
export function heldKey(): string | undefined {
  let context = contexts.getStore();
  while (context?.ended) context = context.outer;
  return context?.key;
}

/** Runs the lock's function as one that holds `key`. */
export function holding<R>(key: string, work: () => R | Promise<R>): Promise<R> {
  const context: Context = { key, outer: contexts.getStore(), ended: false };
  return contexts.run(context, async () => {
    try {
      return await work();
    } finally {
      context.ended = true;
    }
  });
}
