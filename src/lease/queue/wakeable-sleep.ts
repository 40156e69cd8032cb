import { after, now, type Timer } from '../../base/clock.js';

/** A sleep that a ring ends, also a ring that came just before it. */
export class WakeableSleep {
  #ringsAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  #wake: (() => void) | undefined;

  wake(): void {
    this.wakeIn(0);
  }

  /** Instead of what the present sleep was to end at; before a sleep, at the latest. */
  wakeIn(ms: number): void {
    const at = now() + ms;
    if (this.#wake === undefined) {
      // What the sleep will be given may be older than this, so the earlier one counts.
      this.#ringsAt = Math.min(this.#ringsAt, at);
      return;
    }
    this.#timer?.stop();
    if (ms <= 0) this.#wake();
    else this.#timer = after(ms, this.#wake);
  }

  /** Forgets the rings so far. */
  reset(): void {
    this.#ringsAt = Number.POSITIVE_INFINITY;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const time = Math.min(ms, this.#ringsAt - now());
      if (time <= 0) return resolve();
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
      this.#timer = after(time, this.#wake);
    });
  }
}
