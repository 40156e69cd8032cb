/** The delay before the next look at a key if wake-ups do not arrive; milliseconds. */
export type PollDelay = () => number;

export function fixed(time: number): PollDelay {
  return () => time;
}

/** Between a tenth of `longest` and all of it, so that processes that began together do not poll in step. */
export function jittered(longest: number): PollDelay {
  return () => longest * (0.1 + 0.9 * Math.random());
}
