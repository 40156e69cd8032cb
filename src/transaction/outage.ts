import { type Deadline, now, sleep, within } from '../base/clock.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import type { Database } from '../database/database.js';

/** Pause before the server is asked again; it doubles up to the longest, with chance in it. */
const FIRST_PAUSE = 25;
const LONGEST_PAUSE = 1_000;
/** An outage that begins so soon behind the last one is the same; ms. */
const SAME_OUTAGE = 5_000;

type ServerProbe = Pick<Database<unknown>, 'rescue' | 'isUnavailable'>;

/** A server that is not there, as while it starts again: all who need it wait, and one of them asks. */
export class Outage {
  #asking: Promise<void> | undefined;
  #waiting = 0;
  #pause = FIRST_PAUSE;
  #endedAt = Number.NEGATIVE_INFINITY;

  /** Resolves when it is worth trying again, or the time is over; rejects with the reason of the abort. */
  async wait(database: ServerProbe, abort: LazyAbort, deadline: Deadline): Promise<void> {
    this.#waiting++;
    try {
      this.#asking ??= this.#ask(database);
      await abort.race(within(this.#asking, deadline.remaining));
    } finally {
      this.#waiting--;
    }
  }

  /** Until it answers, whatever the answer is, or nobody waits any more. */
  async #ask({ rescue, isUnavailable }: ServerProbe): Promise<void> {
    if (now() - this.#endedAt > SAME_OUTAGE) this.#pause = FIRST_PAUSE;
    let isAway = true;
    while (isAway && this.#waiting > 0) {
      await sleep(this.#pause * (0.5 + Math.random() / 2));
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
      isAway = await rescue('SELECT 1', []).then(() => false, isUnavailable);
    }
    this.#endedAt = now();
    this.#asking = undefined;
  }
}
