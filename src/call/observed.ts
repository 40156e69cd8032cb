import type { Query } from '../database/database.js';
import type { RedisLike } from '../options/options.js';
import type { LockState } from './operators.js';

/** By `Symbol.for`, so that the board of one form of the package (ESM, CommonJS) finds what a client of the other has. */
const OBSERVED = Symbol.for('prisma-extension-fenced-lock.observed');

/** What a client shows to the board, beside the methods of `$locks`. Nothing here changes anything. */
export interface Observed {
  /** The keys in use, and those of `recent` that are not. @throws LockUnavailableError */
  look(recent: readonly string[]): Promise<readonly LockState[]>;
  /** How many callers of this process wait, key by key. */
  callers(): ReadonlyMap<string, number>;
  /** Over a connection of its own, which is opened when it is first used and closed when it is idle. */
  readonly query: Query;
  /** One, or each node of a quorum. */
  readonly redis: readonly RedisLike[];
}

/** Gives `locks` what the board needs, which neither its type nor its listing shows. */
export function makeObservable(locks: object, observed: Observed): void {
  Object.defineProperty(locks, OBSERVED, { value: observed });
}

/** `undefined`: these are no `$locks` of this package. */
export function observedOf(locks: unknown): Observed | undefined {
  return (locks as { readonly [OBSERVED]?: Observed } | null | undefined)?.[OBSERVED];
}
