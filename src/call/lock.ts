import type { LazyAbort } from '../base/lazy-abort.js';

/** The lock, as the caller's function gets it. */
export interface Lock {
  /** The key; of several, the first in sorted order. */
  readonly key: string;
  /** All keys, sorted by their UTF-8 bytes. */
  readonly keys: readonly string[];
  /** The fencing token of this turn. It is higher than the tokens of all earlier turns of these keys. */
  readonly token: bigint;
  /** Aborts when the work must end early: the lease is lost, the timeout is over, or the caller's signal aborts. */
  readonly signal: AbortSignal;
  /** `{ keys, token }`, with the token as a string, because JSON has no bigint. */
  toJSON(): { readonly keys: readonly string[]; readonly token: string };
}

export type Work<Tx, R> = (tx: Tx, lock: Lock) => R | Promise<R>;

/** The lock of one transaction. */
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
