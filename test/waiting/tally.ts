/** Counts, and tells who waits for a count. */
export class Tally {
  count = 0;
  #waiting: Array<{ count: number; reached: () => void }> = [];

  add(): void {
    this.count++;
    this.#waiting = this.#waiting.filter(({ count, reached }) => {
      if (count > this.count) return true;
      reached();
      return false;
    });
  }

  /** Resolves once whoever was told of it before has acted on it. */
  async reach(count: number): Promise<void> {
    if (this.count < count) {
      await new Promise<void>((reached) => {
        this.#waiting.push({ count, reached });
      });
    }
    await turnOfLoop();
  }
}

/** Counts what has been done, and knows what is still under way. */
export class Work extends Tally {
  readonly #running = new Set<Promise<unknown>>();

  async run<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
      this.add();
    }
  }

  /** Resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    await turnOfLoop();
  }
}

/** Everything that was ready to run has run. */
export function turnOfLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
