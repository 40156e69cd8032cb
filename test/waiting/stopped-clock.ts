import type * as Clock from '../../src/base/clock.js';

/** The clock of src in a test that moves it. */
export const clock = { now: 1_000 };

/** For `vi.mock`: time passes only when the test says so. */
export function stopped(real: typeof Clock): typeof Clock {
  return { ...real, now: () => clock.now };
}
