import { after, now, type Timer } from '../../base/clock.js';
import type { Waiter } from './waiter.js';

/** Callers whose wait times end within this time of each other give up together; milliseconds. */
const TOGETHER = 2;

/**
 * The wait timeouts of all callers of a queue, on one timer: there may be thousands of callers, and a timer each would
 * cost more than the callers.
 */
export class WaitTimeouts {
  readonly #waiters: ReadonlySet<Waiter>;
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  constructor(waiters: ReadonlySet<Waiter>) {
    this.#waiters = waiters;
  }

  /** Adds a caller with this many milliseconds left. */
  add(remaining: number): void {
    const at = now() + remaining;
    if (at >= this.#firesAt) return;
    this.#timer?.stop();
    this.#firesAt = at;
    this.#timer = after(remaining, () => this.#check());
  }

  /** Called when no caller waits any more. */
  stop(): void {
    this.#timer?.stop();
    this.#firesAt = Number.POSITIVE_INFINITY;
  }

  #check(): void {
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
