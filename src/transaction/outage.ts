import { Backoff } from '../base/backoff.js';
import { type Deadline, now, sleep, within } from '../base/clock.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import type { Database } from '../database/database.js';

/** First and longest pause before the server is asked again, shortened by jitter; milliseconds. */
const FIRST_PAUSE = 25;
const LONGEST_PAUSE = 1_000;
/** An outage that begins within this time after the last one continues its pauses; milliseconds. */
const SAME_OUTAGE = 5_000;

type ServerProbe = Pick<Database<unknown>, 'rescue' | 'isUnavailable'>;

/**
 * Waits while Postgres is unavailable, for example during a restart. All callers wait for one probe, so that they do
 * not all connect to a starting server.
 */
export class Outage {
  #probing: Promise<void> | undefined;
  #waiting = 0;
  readonly #backoff = new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
  #endedAt = Number.NEGATIVE_INFINITY;

  /** Resolves when a try may succeed or the deadline has passed. Rejects with the abort's reason. */
  async wait(database: ServerProbe, abort: LazyAbort, deadline: Deadline): Promise<void> {
    this.#waiting++;
    try {
      this.#probing ??= this.#probe(database);
      await abort.race(within(this.#probing, deadline.remaining));
    } finally {
      this.#waiting--;
    }
  }

  /** Probes until the server answers, with or without an error, or until no caller waits. */
  async #probe({ rescue, isUnavailable }: ServerProbe): Promise<void> {
    if (now() - this.#endedAt > SAME_OUTAGE) this.#backoff.reset();
    let isAway = true;
    while (isAway && this.#waiting > 0) {
      await sleep(this.#backoff.next() * (0.5 + Math.random() / 2));
      isAway = await rescue('SELECT 1', []).then(() => false, isUnavailable);
    }
    this.#endedAt = now();
    this.#probing = undefined;
  }
}
