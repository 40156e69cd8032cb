import { setTimeout as sleep } from 'node:timers/promises';

/**
 * The place between read and write where a worker can be frozen. The sale that is chosen waits there until it is told
 * to go on; those of this worker that come after it wait as well, and those before it have ended. Otherwise the
 * process might be frozen while one of them holds a row lock, which would keep the others out.
 */
export class FreezePoint {
  readonly #chosen: number;
  readonly #onReached: () => void;
  #passed = 0;
  #writing = 0;
  #writesEnded: (() => void) | undefined;
  #goOn: () => void = () => {};
  readonly #open: Promise<void>;

  /** `chosen`: the number of the sale, from 1. */
  constructor(chosen: number, onReached: () => void) {
    this.#chosen = chosen;
    this.#onReached = onReached;
    this.#open = new Promise((resolve) => {
      this.#goOn = resolve;
    });
  }

  /** For one sale; to be told when the sale has ended, however it did. */
  visitor(): { pass(): Promise<void>; ended(): void } {
    let writing = false;
    return {
      pass: async () => {
        const number = ++this.#passed;
        if (number === this.#chosen) {
          await this.#quiet();
          this.#onReached();
        }
        if (number >= this.#chosen) {
          await this.#open;
          // The rest of the thinking. Timers that were overdue when the process was thawed, such as that of a lost
          // lease, come before its end.
          await sleep(5);
        }
        writing = true;
        this.#writing++;
      },
      ended: () => {
        if (!writing) return;
        writing = false;
        if (--this.#writing === 0) this.#writesEnded?.();
      },
    };
  }

  goOn(): void {
    this.#goOn();
  }

  async #quiet(): Promise<void> {
    if (this.#writing === 0) return;
    await new Promise<void>((resolve) => {
      this.#writesEnded = resolve;
    });
  }
}
