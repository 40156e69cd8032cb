import { after, now, type Timer } from '../../base/clock.js';
import type { Waiter } from './waiter.js';

/** Callers whose time is over within so many milliseconds of each other give up together. */
const TOGETHER = 2;

/** The wait times of all waiters in one line, on one timer: there may be thousands, and a timer costs more than a waiter. */
export class WaitTimeouts {
  readonly #waiters: ReadonlySet<Waiter>;
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  constructor(waiters: ReadonlySet<Waiter>) {
    this.#waiters = waiters;
  }

  /** One of them has so many milliseconds left. */
  add(remaining: number): void {
    const at = now() + remaining;
    if (at >= this.#firesAt) return;
    this.#timer?.stop();
    this.#firesAt = at;
    this.#timer = after(remaining, () => this.#look());
  }

  /** Nobody waits any more. */
  stop(): void {
    this.#timer?.stop();
    this.#firesAt = Number.POSITIVE_INFINITY;
  }

  #look(): void {
    this.stop();
    let next = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiters) {
      if (!waiter.isWaiting) continue;
      const { deadline } = waiter.request;
      if (deadline.passed) waiter.giveUp();
      else next = Math.min(next, deadline.remaining);
    }
    if (Number.isFinite(next)) this.add(Math.max(next, TOGETHER));
  }
}
