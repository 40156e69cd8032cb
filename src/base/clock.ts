import { AsyncLocalStorage } from 'node:async_hooks';

// Captured at import, because a user's tests may replace the globals with fake timers. Deadlines are monotonic, because
// a wall clock can be set back, and are never compared with another machine's clock.
const { setTimeout: startTimer, clearTimeout: stopTimer, setImmediate: soon } = globalThis;
const { nextTick } = process;

/** The longest delay of a Node timer (2^31 - 1 ms, 24.8 days). Node fires a longer one at once. */
export const LONGEST_TIME = 2 ** 31 - 1;

/** A timer that was started. */
export interface Timer {
  /** It does not keep the process running. */
  unref(): Timer;
  /** How a timer of another clock is stopped. */
  readonly cancel?: () => void;
}

/** What stands for the clock of this process in a part of a test. */
export interface Clock {
  now(): number;
  after(ms: number, action: () => void): Timer;
  /** Resolves when no promise reaction is due any more. */
  reactionsDone(): Promise<void>;
}

/** Made with the first clock of a test. */
let clocks: AsyncLocalStorage<Clock> | undefined;

/** Runs `action`, and what comes of it, by another clock. */
export function underClock<R>(clock: Clock, action: () => R): R {
  clocks ??= new AsyncLocalStorage();
  return clocks.run(clock, action);
}

const monotonic = performance.now.bind(performance);

/** Milliseconds on a monotonic clock. */
export function now(): number {
  return clocks?.getStore()?.now() ?? monotonic();
}

/** Calls `action` once, after `ms`. */
export function after(ms: number, action: () => void): Timer {
  return clocks?.getStore()?.after(ms, action) ?? inProcess(ms, action);
}

/** The same, always by the clock of the process. */
export function inProcess(ms: number, action: () => void): Timer {
  return startTimer(action, Math.min(Math.max(0, ms), LONGEST_TIME));
}

export function stop(timer: Timer | undefined): void {
  if (timer?.cancel) timer.cancel();
  else stopTimer(timer as NodeJS.Timeout | undefined);
}

/** A timer for one action at a time. */
export class Alarm {
  #timer: Timer | undefined;

  /** Replaces the action that was set before. */
  set(ms: number, action: () => void): void {
    stop(this.#timer);
    this.#timer = after(ms, action);
  }

  stop(): void {
    stop(this.#timer);
  }
}

/** A point in time, `ms` from now. */
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

/** Resolves when no promise reaction is due any more: Node runs its ticks after all of them. */
export function reactionsDone(): Promise<void> {
  return clocks?.getStore()?.reactionsDone() ?? new Promise((resolve) => nextTick(resolve));
}

/** Resolves when everything has run that this turn of the event loop still has to do. */
export function turnOfLoop(): Promise<void> {
  return (
    clocks?.getStore()?.reactionsDone() ??
    new Promise((resolve) => {
      soon(resolve);
    })
  );
}

/**
 * Calls `action` once, after `ms` and after the answers that have arrived by then. When the event loop is free again after it
 * was blocked, Node may run the timers first and read its sockets behind them.
 */
export class AnswerTimer {
  readonly #timer: Timer;
  #isStopped = false;

  constructor(ms: number, action: () => void) {
    const overdue = () => {
      if (!this.#isStopped) action();
    };
    this.#timer = after(ms, () => (clocks?.getStore() ? overdue() : soon(overdue)));
  }

  stop(): void {
    this.#isStopped = true;
    stop(this.#timer);
  }

  /** It does not keep the process running. */
  unref(): void {
    this.#timer.unref();
  }
}

/** The result of `within` when the time is over first. */
export const OVERDUE = Symbol('overdue');

/** The promise's result, or `OVERDUE` if it has none after `ms`. A later rejection of the promise is ignored. */
export function within<T>(promise: Promise<T>, ms: number): Promise<T | typeof OVERDUE> {
  return new Promise((resolve, reject) => {
    const timer = new AnswerTimer(ms, () => resolve(OVERDUE));
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
