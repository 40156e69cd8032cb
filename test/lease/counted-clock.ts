import type * as Clock from '../../src/base/clock.js';

/** The timers of src that run at the moment and keep the process alive. */
export const timers = new Set<Clock.Timer>();

/** For `vi.mock`: the real clock, whose timers are counted. */
export function counted(clock: typeof Clock): typeof Clock {
  const after: typeof Clock.after = (ms, action) => {
    const timer = clock.after(ms, () => {
      timers.delete(timer);
      action();
    });
    const { stop, unref } = timer;
    timer.stop = () => {
      timers.delete(timer);
      stop();
    };
    timer.unref = () => {
      timers.delete(timer);
      return unref();
    };
    timers.add(timer);
    return timer;
  };
  return { ...clock, after };
}
