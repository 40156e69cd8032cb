import { turnOfLoop } from '../base/clock.js';

/**
 * The one gate that all operations of a transaction pass: it counts what is in flight, remembers what failed, and
 * can be shut. An operation that begins after that is refused; one in flight is waited for, because Prisma would
 * otherwise send ROLLBACK or COMMIT between its statements, and the rest of them would land outside.
 */
export class Gate {
  #inFlight = 0;
  #passed = 0;
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

  /** Counts an operation that begins. Throws where the gate is shut; otherwise `leave` has to follow. */
  enter(): void {
    this.throwIfShut();
    this.#inFlight++;
    this.#passed++;
  }

  throwIfShut(): void {
    if (this.#shut) throw this.#shut();
  }

  leave(): void {
    this.#inFlight--;
    if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Remembers that an operation failed. */
  fail(error: unknown): void {
    if (!this.#failed) this.#failure = error;
    this.#failed = true;
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

  /**
   * Resolves when nothing is in flight, and nothing follows: an operation of several statements sends the next one as soon
   * as it has the answer to the one before.
   */
  async quiet(): Promise<void> {
    for (let seen = -1; seen !== this.#passed; ) {
      seen = this.#passed;
      await this.idle();
      await turnOfLoop();
    }
  }
}
