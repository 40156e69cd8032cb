/**
 * The place between read and write where a worker can be frozen. The sale that is chosen waits there until it is told
 * to go on; those of this worker that come after it wait as well, and those before it have ended. Otherwise the
 * process might be frozen while one of them holds a row lock, which would keep the others out.
 */
export class FreezePoint {
  readonly #chosen: number;
  readonly #onReached: () => void;
  readonly #thawed: Promise<void>;
  #goOn: () => void = () => {};
  #passed = 0;
  #writing = 0;
  #onQuiet: () => void = () => {};

  /** `chosen`: the number of the sale, from 1. */
  constructor(chosen: number, onReached: () => void) {
    this.#chosen = chosen;
    this.#onReached = onReached;
    this.#thawed = new Promise((resolve) => {
      this.#goOn = resolve;
    });
  }

  /** For one try of one sale, which says when it has ended, however it did. */
  visitor(): { pass(): Promise<void>; ended(): void } {
    let writing = false;
    const ended = () => {
      if (!writing) return;
      writing = false;
      if (--this.#writing === 0) this.#onQuiet();
    };
    return {
      pass: async () => {
        // A try that begins again, as behind a WATCH, has ended its write.
        ended();
        await this.#pass(++this.#passed);
        writing = true;
        this.#writing++;
      },
      ended,
    };
  }

  goOn(): void {
    this.#goOn();
  }

  async #pass(number: number): Promise<void> {
    if (number < this.#chosen) return;
    if (number > this.#chosen) return await this.#thawed;
    await this.#quiet();
    this.#onReached();
    await this.#thawed;
  }

  async #quiet(): Promise<void> {
    if (this.#writing === 0) return;
    await new Promise<void>((resolve) => {
      this.#onQuiet = resolve;
    });
  }
}
