/**
 * All operations of a transaction pass this gate. It counts operations in flight, remembers the first failure, and can
 * be shut. A shut gate refuses new operations. Operations in flight are waited for: Prisma would otherwise send
 * ROLLBACK or COMMIT between the statements of an operation, and the rest would run outside the transaction.
 */
export class Gate {
  #inFlight = 0;
  #beats = 0;
  #shut: (() => unknown) | undefined;
  #failure: unknown;
  #failed = false;
  #idle: Array<() => void> = [];

  /** The first error of an operation, even if the caller's function swallowed it. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failed ? { error: this.#failure } : undefined;
  }

  get busy(): boolean {
    return this.#inFlight > 0;
  }

  /** Whether operations of the caller's function are in flight. */
  get isAtWork(): boolean {
    return this.#inFlight > this.#beats;
  }

  get isShut(): boolean {
    return this.#shut !== undefined;
  }

  /** Counts an operation that begins; each `enter` needs one `leave`. Throws if the gate is shut. */
  enter(): void {
    this.throwIfShut();
    this.#inFlight++;
  }

  throwIfShut(): void {
    if (this.#shut) throw this.#shut();
  }

  leave(): void {
    this.#inFlight--;
    if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** The same for a statement that this package sends beside the caller's function. */
  enterBeat(): void {
    this.enter();
    this.#beats++;
  }

  leaveBeat(): void {
    this.#beats--;
    this.leave();
  }

  fail(error: unknown): void {
    if (!this.#failed) this.#failure = error;
    this.#failed = true;
  }

  /** Refuses operations from now on with `error()`. The first call decides. */
  shut(error: () => unknown): void {
    this.#shut ??= error;
  }

  /** Resolves when no operation is in flight. */
  idle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }
}
