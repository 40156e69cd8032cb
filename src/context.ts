import { AsyncLocalStorage } from 'node:async_hooks';
import { NestedError, ReentryError } from './base/errors.js';

/** What one async context holds; it ends with the lock's function, though what that left behind may go on. */
interface Context {
  readonly keys: readonly string[];
  /** What an inner call of these keys may join; nothing joins a handle. */
  readonly joint: object | undefined;
  readonly outer: Context | undefined;
  ended: boolean;
}

/** On `globalThis`, so that a second copy of this package, or a dev server's reload, does not lose sight of it. */
const SLOT = Symbol.for('prisma-extension-fenced-lock.context');
const slots = globalThis as { [SLOT]?: AsyncLocalStorage<Context> };
slots[SLOT] ??= new AsyncLocalStorage<Context>();
const contexts = slots[SLOT];

/**
 * What a call of these keys joins, if its context holds them all and `mayJoin` says so. Refuses one that would wait for
 * itself, or for others while it keeps them waiting: the outer lock holds a connection meanwhile, and as many such calls
 * as the pool has connections hang it.
 *
 * @throws ReentryError, NestedError
 */
export function findJoint(
  keys: readonly string[],
  nested: 'throw' | 'allow',
  mayJoin: (joint: object) => boolean,
): object | undefined {
  let enclosing: Context | undefined;
  for (let context = contexts.getStore(); context !== undefined; context = context.outer) {
    if (context.ended) continue;
    enclosing ??= context;
    const { keys: held, joint } = context;
    const same = keys.filter((key) => held.includes(key));
    if (same[0] === undefined) continue;
    if (same.length === keys.length && joint !== undefined && mayJoin(joint)) return joint;
    throw new ReentryError(same[0]);
  }
  if (enclosing && nested === 'throw') throw new NestedError(keys[0] as string, enclosing.keys[0] as string);
  return undefined;
}

/** A key that the present async context holds, if it holds one. */
export function heldKey(): string | undefined {
  let context = contexts.getStore();
  while (context?.ended) context = context.outer;
  return context?.keys[0];
}

/** Whether the present async context holds this key. */
export function holds(key: string): boolean {
  for (let context = contexts.getStore(); context !== undefined; context = context.outer) {
    if (!context.ended && context.keys.includes(key)) return true;
  }
  return false;
}

/** Runs the lock's function as one that holds `keys`. */
export function holding<R>(keys: readonly string[], joint: object | undefined, work: () => R | Promise<R>): Promise<R> {
  const context: Context = { keys, joint, outer: contexts.getStore(), ended: false };
  return contexts.run(context, async () => {
    try {
      return await work();
    } finally {
      context.ended = true;
    }
  });
}
