import { NestedError, ReentryError } from './errors.js';
import { runInside, scopes } from './scope.js';

/**
 * The keys that a lock's function holds, in the async context of that function. It ends with the function, although
 * work that was not awaited may go on.
 */
export interface Held {
  readonly keys: readonly string[];
  /** The transaction that an inner call of these keys may join; `undefined` for a handle. */
  readonly joinable: object | undefined;
  readonly transaction: OpenTransaction;
}

/** The transaction of a lock, as code under it finds it that was not given it. Plain: another copy of this package may look. */
export interface OpenTransaction {
  /** The client that the lock was taken on. */
  readonly client: object;
  readonly tx: unknown;
  readonly lock: unknown;
  readonly options?: { readonly isolationLevel?: string | undefined };
}

/** Everything that the present async context holds, the innermost first. */
export function allHeld(): readonly Held[] {
  return scopes().flatMap(({ inside: { held } }) => (held === undefined ? [] : [held as Held]));
}

/**
 * Returns the transaction that a call of these keys joins, if the context holds all of them and `mayJoin` accepts.
 * Refuses a call that would wait for itself. Also refuses a call of other keys: the outer lock holds a connection and
 * keeps other callers waiting, and as many such calls as the pool has connections block each other.
 *
 * @throws ReentryError, NestedError
 */
export function findJoinable(
  keys: readonly string[],
  nested: 'throw' | 'allow',
  mayJoin: (joinable: object) => boolean,
): object | undefined {
  let enclosing: Held | undefined;
  for (const held of allHeld()) {
    enclosing ??= held;
    const same = keys.filter((key) => held.keys.includes(key));
    if (same[0] === undefined) continue;
    if (same.length === keys.length && held.joinable !== undefined && mayJoin(held.joinable)) return held.joinable;
    throw new ReentryError(same[0]);
  }
  if (enclosing && nested === 'throw') throw new NestedError(keys[0] as string, enclosing.keys[0] as string);
  return undefined;
}

/** The same for a call that joins none. @throws ReentryError, NestedError */
export function refuseNestedCall(keys: readonly string[], nested: 'throw' | 'allow'): void {
  findJoinable(keys, nested, () => false);
}

/** A key that the present async context holds, if there is one. */
export function heldKey(): string | undefined {
  return allHeld()[0]?.keys[0];
}

/** Whether the present async context holds this key. */
export function holds(key: string): boolean {
  return allHeld().some(({ keys }) => keys.includes(key));
}

/** The innermost of what the present async context holds: of any client, or of this one. */
export function innermostHeld(client?: object): Held | undefined {
  return allHeld().find(({ transaction }) => client === undefined || transaction.client === client);
}

/** Runs the lock's function in an async context that holds `keys`. */
export function holding<R>(
  keys: readonly string[],
  joinable: object | undefined,
  transaction: OpenTransaction,
  work: () => R | Promise<R>,
): Promise<R> {
  const held: Held = { keys, joinable, transaction };
  return runInside({ held }, async () => await work());
}
