import { AsyncResource } from 'node:async_hooks';
import { type Clock, LONGEST_TIME, type Timer } from '../../../base/clock.js';

/** As long as a lease of a fake: a timer for it is none, since nothing but the test ends the lease. */
const NEVER = LONGEST_TIME / 2;

/**
 * How many microtasks pass behind the return of a function before the fake looks for operations in flight: in that time, a
 * helper that was not awaited begins its next operation. Well below a millisecond.
 */
const OF_REACTIONS = 500;
/**
 * How many microtasks an operation takes at least, also if its mock has the result at once. More than `OF_REACTIONS`: an
 * operation that nobody waits for is then still in flight when the fake looks for it, as on a server.
 */
export const OF_OPERATION = 2 * OF_REACTIONS;

/** Lets so many microtasks pass. Not by `nextTick`, which the fake timers of Jest stop, also before this module is loaded. */
export async function microtasks(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed++) await undefined;
}

/**
 * The timers that are global when they are started: fake timers of a test runner move fake locks, although this package
 * keeps those that were there at import. They keep the process running: nothing else may be left that a waiting test waits
 * for, and `node:test` cancels a test when the event loop is empty.
 */
export class GlobalClock implements Clock {
  #now = 0;
  #read: { readonly source: () => number; readonly at: number } | undefined;

  /** Goes on with `performance.now()` until a test runner puts another one in its place, and with each timer that fires. */
  now(): number {
    const source = globalThis.performance.now;
    const at = globalThis.performance.now();
    if (this.#read?.source === source) this.#now += Math.max(0, at - this.#read.at);
    this.#read = { source, at };
    return this.#now;
  }

  after(ms: number, action: () => void): Timer {
    const timer = { unref: () => timer, cancel: () => {} };
    if (ms >= NEVER) return timer;
    const due = this.now() + ms;
    const { setTimeout, clearTimeout } = globalThis;
    // A fake timer fires in the async context of the test that moves it on, in which this clock does not go.
    const fires = AsyncResource.bind(() => {
      // Where only the timers are fake, the time of this one has come all the same.
      this.#now = Math.max(this.now(), due);
      action();
    });
    const handle = setTimeout(fires, ms);
    timer.cancel = () => clearTimeout(handle);
    return timer;
  }

  reactionsDone(): Promise<void> {
    return microtasks(OF_REACTIONS);
  }
}
