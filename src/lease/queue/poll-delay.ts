/** How long to rest before the next look at a key whose wake-ups cannot be heard; milliseconds. */
export type PollDelay = () => number;

/** Always as long. */
export function fixed(time: number): PollDelay {
  return () => time;
}

/** Somewhere from a tenth of it to all of it, so that those who began together do not go on in step. */
export function jittered(longest: number): PollDelay {
  return () => longest * (0.1 + 0.9 * Math.random());
}
