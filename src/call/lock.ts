import type { LazyAbort } from '../base/lazy-abort.js';

/** The lock, as the function under it sees it. */
export interface Lock {
  /** The key; of several, the first in their order. */
  readonly key: string;
  /** All of its keys, sorted by their bytes. */
  readonly keys: readonly string[];
  /** The fencing token of this turn: higher than that of every turn of these keys that was admitted before. */
  readonly token: bigint;
  /** Aborts when the work must end before its time: the lease is lost, the timeout is over, or the caller's signal. */
  readonly signal: AbortSignal;
  /** `{ keys, token }` with the token as a string, which JSON has no number for. */
  toJSON(): { readonly keys: readonly string[]; readonly token: string };
}

export type Work<Tx, R> = (tx: Tx, lock: Lock) => R | Promise<R>;

/** Of one transaction. */
export class HeldLock implements Lock {
  readonly keys: readonly string[];
  readonly token: bigint;
  readonly #abort: LazyAbort;

  constructor(keys: readonly string[], token: bigint, abort: LazyAbort) {
    this.keys = keys;
    this.token = token;
    this.#abort = abort;
  }

  get key() {
    return this.keys[0] as string;
  }

  get signal() {
    return this.#abort.signal;
  }

  toJSON() {
    return { keys: this.keys, token: String(this.token) };
  }
}
