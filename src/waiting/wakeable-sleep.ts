import { after, now, stop, type Timer } from '../base/clock.js';

/** A sleep that `wake` ends, even if `wake` came just before it. */
export class WakeableSleep {
  #wakesAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  #wake: (() => void) | undefined;

  wake(): void {
    this.wakeIn(0);
  }

  /** Sets when the present sleep ends. Before a sleep: the latest time at which the next one ends. */
  wakeIn(ms: number): void {
    const at = now() + ms;
    if (this.#wake === undefined) {
      // An earlier time may have been given already. Keep the earlier one.
      this.#wakesAt = Math.min(this.#wakesAt, at);
      return;
    }
    stop(this.#timer);
    if (ms <= 0) this.#wake();
    else this.#timer = after(ms, this.#wake);
  }

  /** Forgets wake-ups that came before. */
  reset(): void {
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const time = Math.min(ms, this.#wakesAt - now());
      if (time <= 0) return resolve();
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
      this.#timer = after(time, this.#wake);
    });
  }
}
