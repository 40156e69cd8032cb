import { offAbort, onAbort } from './abort-listeners.js';

// Taken once, at import: users run fake timers, and a wall clock can be set back. Every deadline here is
// monotonic; none is ever compared with another machine's.
const { setTimeout: startTimer, clearTimeout: stopTimer, setImmediate: soon } = globalThis;
const monotonic = performance.now.bind(performance);

/** The longest delay that a Node timer takes (2^31 - 1 ms, 24.8 days); a longer one would fire at once. */
export const LONGEST_TIME = 2 ** 31 - 1;

/** Milliseconds on a clock that never goes back. */
export function now(): number {
  return monotonic();
}

/** A class and not closures: there is one for every caller that waits. */
export class Timer {
  readonly #handle: NodeJS.Timeout;

  constructor(ms: number, action: () => void) {
    this.#handle = startTimer(action, Math.min(Math.max(0, ms), LONGEST_TIME));
  }

  stop(): void {
    stopTimer(this.#handle);
  }

  /** Lets the process end while this timer is all that is left. */
  unref(): Timer {
    this.#handle.unref();
    return this;
  }
}

/** Calls `action` once, after `ms`. */
export function after(ms: number, action: () => void): Timer {
  return new Timer(ms, action);
}

/** One action at a time, on one timer: putting it off, as each step of a call does, does not touch the timer. */
export class Alarm {
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;
  #at = Number.POSITIVE_INFINITY;
  #action: () => void = () => {};

  /** Instead of what was set before. */
  set(ms: number, action: () => void): void {
    this.#at = now() + ms;
    this.#action = action;
    if (this.#at < this.#firesAt) this.#start();
  }

  stop(): void {
    this.#timer?.stop();
  }

  #start(): void {
    this.#timer?.stop();
    this.#firesAt = this.#at;
    this.#timer = after(this.#at - now(), () => {
      this.#firesAt = Number.POSITIVE_INFINITY;
      if (now() < this.#at) this.#start();
      else this.#action();
    });
  }
}

/** A point in time, from now on. */
export class Deadline {
  readonly #at: number;

  constructor(ms: number) {
    this.#at = now() + ms;
  }

  /** Milliseconds left, never below 0. */
  get remaining(): number {
    return Math.max(0, this.#at - now());
  }

  get passed(): boolean {
    return this.remaining === 0;
  }
}

/** Resolves after `ms`. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    after(ms, resolve);
  });
}

/** Resolves when everything has run that this turn of the event loop still has to do. */
export function turnOfLoop(): Promise<void> {
  return new Promise((resolve) => {
    soon(resolve);
  });
}

/** What `within` resolves to when the time ran out first. */
export const OVERDUE = Symbol('overdue');

/** The promise's result, or `OVERDUE` after `ms`. A later rejection of the promise is nobody's any more. */
export function within<T>(promise: Promise<T>, ms: number): Promise<T | typeof OVERDUE> {
  return new Promise((resolve, reject) => {
    const timer = after(ms, () => resolve(OVERDUE));
    promise.then(
      (value) => {
        timer.stop();
        resolve(value);
      },
      (error: unknown) => {
        timer.stop();
        reject(error);
      },
    );
  });
}

/** The promise's result, or a rejection with `signal.reason` as soon as the signal aborts. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const aborted = { handleEvent: () => reject(signal.reason) };
    if (signal.aborted) aborted.handleEvent();
    else onAbort(signal, aborted);
    promise.then(resolve, reject).finally(() => offAbort(signal, aborted));
  });
}
