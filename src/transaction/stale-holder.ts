import { Deadline, sleep } from '../base/clock.js';

/** How long a holder of a lease may need until it is admitted; milliseconds. */
const ADMITTED_WITHIN = 1_000;
const PAUSE = 50;

/** A key as both servers show it. */
interface SeenKey {
  /** The holder of the lease. */
  readonly holder: string | undefined;
  /** The last token that was admitted and committed. */
  readonly token: bigint | undefined;
  /** Whether a transaction is at work under the key. */
  readonly isAtWork: boolean;
}

/**
 * After the token of a key has been raised to take it from its holder: who has the lease now with a lower token; `undefined`
 * if nobody. It got the lease after that holder was looked for, and its token before the raise, as a handle that was resumed
 * in between. Nothing would tell it, and an idle handle would keep the key. A holder that was admitted after the raise shows
 * a higher token, or a transaction at work, within moments, and keeps its lease.
 */
export async function findStaleHolder(look: () => Promise<SeenKey>, raised: bigint): Promise<string | undefined> {
  const deadline = new Deadline(ADMITTED_WITHIN);
  let seen: string | undefined;
  for (;;) {
    const { holder, token = 0n, isAtWork } = await look();
    if (holder === undefined || isAtWork || token > raised) return undefined;
    // A holder that comes while this waits is admitted after the raise, too.
    if (seen !== undefined && holder !== seen) return undefined;
    if (deadline.passed) return holder;
    seen = holder;
    await sleep(PAUSE);
  }
}
