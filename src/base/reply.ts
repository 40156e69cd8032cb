/**
 * A result that comes once. Not a promise until somebody asks for one: a turn has several that nobody awaits, and where
 * async contexts are followed by hooks, as on Node 20 and 22, each promise costs about as much as a statement's text.
 */
export class Reply<T> {
  #outcome: { readonly value: T } | { readonly error: unknown } | undefined;
  #listener: { resolved(value: T): void; rejected(error: unknown): void } | undefined;
  #promise: Promise<T> | undefined;

  /** The first call of this or `reject` counts. */
  resolve(value: T): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = { value };
    this.#listener?.resolved(value);
  }

  reject(error: unknown): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = { error };
    this.#listener?.rejected(error);
  }

  /** `undefined` where it has not come, or was a rejection. */
  get value(): T | undefined {
    return this.#outcome !== undefined && 'value' in this.#outcome ? this.#outcome.value : undefined;
  }

  /** Calls one of them, once, now or later. Either this or `promise` is used, and this once. */
  listen(resolved: (value: T) => void, rejected: (error: unknown) => void): void {
    this.#listener = { resolved, rejected };
    if (this.#outcome === undefined) return;
    if ('value' in this.#outcome) resolved(this.#outcome.value);
    else rejected(this.#outcome.error);
  }

  get promise(): Promise<T> {
    this.#promise ??= new Promise((resolve, reject) => this.listen(resolve, reject));
    return this.#promise;
  }
}
