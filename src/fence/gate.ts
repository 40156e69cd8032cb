/**
 * The one gate that all operations of a transaction pass: it counts what is in flight, remembers what failed, and
 * can be shut. An operation that begins after that is refused; one in flight is waited for, because Prisma would
 * otherwise send ROLLBACK or COMMIT between its statements, and the rest of them would land outside.
 */
export class Gate {
  #inFlight = 0;
  #shut: (() => unknown) | undefined;
  #failure: unknown;
  #failed = false;
  #idle: Array<() => void> = [];

  /** The first failure that an operation had, also one that the caller swallowed. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failed ? { error: this.#failure } : undefined;
  }

  get busy(): boolean {
    return this.#inFlight > 0;
  }

  get isShut(): boolean {
    return this.#shut !== undefined;
  }

  async pass<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#shut) throw this.#shut();
    this.#inFlight++;
    try {
      return await operation();
    } catch (error) {
      if (!this.#failed) this.#failure = error;
      this.#failed = true;
      throw error;
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  /** Refuses what begins from now on, with this error, made when it is needed. The first call decides. */
  shut(error: () => unknown): void {
    this.#shut ??= error;
  }

  /** Resolves when nothing is in flight. */
  idle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }
}
