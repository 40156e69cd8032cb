import type { Fault } from './fault.js';
import type { Random } from './random.js';

/** One fault of a schedule. */
export interface Scheduled {
  readonly fault: Fault;
  /** Number of the actor that it hurts, unless it hurts a server. */
  readonly actor: number;
  /** Milliseconds after the one before. */
  readonly pause: number;
  readonly lasts: number;
}

/** Short enough for faults to meet. */
const LONGEST_PAUSE = 800;

/** Without end; the same for the same seed. */
export function* schedule(
  random: Random,
  faults: readonly Fault[],
  actors: number,
  longestPause = LONGEST_PAUSE,
): Generator<Scheduled, never> {
  const places = [...new Set(faults.map(({ place }) => place))];
  for (;;) {
    // By place first: some places have many faults, and the others are to be hurt as often.
    const place = random.one(places);
    yield {
      fault: random.one(faults.filter((fault) => fault.place === place)),
      actor: random.whole(0, actors - 1),
      pause: random.whole(0, longestPause),
      lasts: random.whole(50, 1_200),
    };
  }
}
