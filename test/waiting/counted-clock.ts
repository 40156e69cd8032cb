import type * as Clock from '../../src/base/clock.js';

/** The timers of src that run at the moment and keep the process alive. */
export const timers = new Set<Clock.Timer | undefined>();

/** For `vi.mock`: the real clock, whose timers are counted. */
export function counted(clock: typeof Clock): typeof Clock {
  const after: typeof clock.after = (ms, action) => {
    const timer = clock.after(ms, () => {
      timers.delete(timer);
      action();
    });
    timers.add(timer);
    const { unref } = timer;
    timer.unref = () => {
      timers.delete(timer);
      return unref.call(timer);
    };
    return timer;
  };
  const stop: typeof clock.stop = (timer) => {
    timers.delete(timer);
    clock.stop(timer);
  };
  return { ...clock, after, stop };
}
