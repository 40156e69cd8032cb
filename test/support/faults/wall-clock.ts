const RealDate = Date;

/**
 * Moves the wall clock of this process alone, as whoever reads it sees it: what JavaScript can see of it is `Date`.
 * Timers and `performance.now()` stand on the monotonic clock, which no administrator and no NTP can set.
 */
export function moveWallClock(ms: number): void {
  globalThis.Date = class extends RealDate {
    constructor(...given: []) {
      // With arguments it is a certain time, whatever the clock shows.
      if (given.length === 0) super(RealDate.now() + ms);
      else super(...given);
    }

    static override now(): number {
      return RealDate.now() + ms;
    }
  } as DateConstructor;
}
