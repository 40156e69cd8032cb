/**
 * A result that comes once. It creates a promise only on request: a turn has several replies that nobody awaits, and on
 * Node 20 and 22, where AsyncLocalStorage uses hooks, each promise is expensive.
 */
export class Reply<T> {
  #outcome: { readonly value: T } | { readonly error: unknown } | undefined;
  #listener: { resolved(value: T): void; rejected(error: unknown): void } | undefined;
  #promise: Promise<T> | undefined;

  /** The first call of `resolve` or `reject` counts. */
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

  get isSettled(): boolean {
    return this.#outcome !== undefined;
  }

  /** `undefined` if there is no result yet, or if it is a rejection. */
  get value(): T | undefined {
    return this.#outcome !== undefined && 'value' in this.#outcome ? this.#outcome.value : undefined;
  }

  /** Calls one of the functions once, now or later. Use either this, once, or `promise`. */
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
