import type * as Clock from '../../src/base/clock.js';

/** The timers of src that run at the moment and keep the process alive. */
export const timers = new Set<Clock.Timer>();

/** For `vi.mock`: the real clock, whose timers are counted. */
export function counted(clock: typeof Clock): typeof Clock {
  class CountedTimer extends clock.Timer {
    constructor(ms: number, action: () => void) {
      super(ms, () => {
        timers.delete(this);
        action();
      });
      timers.add(this);
    }

    override stop(): void {
      timers.delete(this);
      super.stop();
    }

    override unref(): Clock.Timer {
      timers.delete(this);
      return super.unref();
    }
  }
  return { ...clock, Timer: CountedTimer, after: (ms, action) => new CountedTimer(ms, action) };
}
