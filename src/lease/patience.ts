import { after, now, type Timer } from '../base/clock.js';
import type { Caller } from './caller.js';

/** Callers whose time is over within so many milliseconds of each other give up together. */
const TOGETHER = 2;

/** The wait times of all callers in one line, on one timer: there may be thousands, and a timer costs more than a caller. */
export class Patience {
  readonly #callers: ReadonlySet<Caller>;
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  constructor(callers: ReadonlySet<Caller>) {
    this.#callers = callers;
  }

  /** One of them has so many milliseconds left. */
  notice(remaining: number): void {
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
    for (const caller of this.#callers) {
      if (!caller.settled) continue;
      const { deadline } = caller.request;
      if (deadline.passed) caller.giveUp();
      else next = Math.min(next, deadline.remaining);
    }
    if (Number.isFinite(next)) this.notice(Math.max(next, TOGETHER));
  }
}
