import { setMaxListeners } from 'node:events';

/**
 * Aborts a lock's work early: the lease is lost, the timeout is over, or the caller's signal aborts. The first abort
 * counts. The `AbortSignal` is created only when it is read, because most work never reads it.
 */
export class LazyAbort {
  #reason: { readonly value: unknown } | undefined;
  #listeners: Array<() => void> = [];
  #controller: AbortController | undefined;

  get aborted(): boolean {
    return this.#reason !== undefined;
  }

  get reason(): unknown {
    return this.#reason?.value;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason.value);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    if (this.#reason) return;
    this.#reason = { value: reason };
    for (const listener of this.#listeners.splice(0)) listener();
    this.#controller?.abort(reason);
  }

  /** Aborts with the signal, at once if it has aborted. Returns the function that ends that. */
  follow(signal: AbortSignal | undefined): () => void {
    if (signal === undefined) return nothing;
    const aborted = { handleEvent: () => this.abort(signal.reason) };
    if (signal.aborted) aborted.handleEvent();
    else onAbort(signal, aborted);
    return () => offAbort(signal, aborted);
  }

  throwIfAborted(): void {
    if (this.#reason) throw this.#reason.value;
  }

  /** Calls `listener` on abort; at once if already aborted. Returns the function that removes it. */
  onAbort(listener: () => void): () => void {
    if (this.#reason) listener();
    else this.#listeners.push(listener);
    return () => {
      const at = this.#listeners.indexOf(listener);
      if (at !== -1) this.#listeners.splice(at, 1);
    };
  }

  /** The promise's result. Rejects with the reason as soon as the abort comes. */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.onAbort(() => reject(this.reason));
      promise.then(
        (value) => {
          cancel();
          resolve(value);
        },
        (error: unknown) => {
          cancel();
          reject(error);
        },
      );
    });
  }
}

function nothing(): void {}

export interface AbortListener {
  handleEvent(): void;
}

/** Calls `listener` when the signal aborts. Does nothing for a signal that has aborted already. */
export function onAbort(signal: AbortSignal | undefined, listener: AbortListener): void {
  if (signal === undefined) return;
  // Node warns of more than ten, and one signal may be that of all callers of a process.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
}

export function offAbort(signal: AbortSignal | undefined, listener: AbortListener): void {
  signal?.removeEventListener('abort', listener);
}
