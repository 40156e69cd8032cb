import { type Deadline, OVERDUE, sleep, within } from '../base/clock.js';
import type { Query } from '../database/database.js';
import { END_BACKEND, EVIDENCE } from '../database/sql.js';
import type { Admission } from './admission.js';

export type Outcome = 'committed' | 'aborted' | 'unknown';

/** What Postgres knows of a transaction and of its key. */
export interface Evidence {
  /** `future`: the server never gave out the xid. `undefined`: it is too long ago. */
  readonly status: 'in progress' | 'committed' | 'aborted' | 'future' | undefined;
  readonly epoch: string | undefined;
  /** `undefined` where the key has no row. */
  readonly born: bigint | undefined;
  readonly turns: bigint;
  readonly attempts: readonly string[];
}

/** How many attempts a key's row remembers; the `admit` function of the migration keeps as many. */
const REMEMBERED = 16n;

/** What a look gets even when time is over; milliseconds. */
const LEAST_LOOK = 1_000;
/** First pause between two looks, and the longest. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 250;

/**
 * Whether a transaction whose COMMIT was not answered has committed.
 *
 * Its backend is ended first: a COMMIT that is still on its way must not arrive after we have looked.
 */
export async function resolveOutcome(rescue: Query, admission: Admission, deadline: Deadline): Promise<Outcome> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    // The rescue connection takes one statement at a time, and others may be before us.
    const looking = look(rescue, admission).catch(() => 'open' as const);
    const verdict = await within(looking, Math.max(LEAST_LOOK, deadline.remaining));
    if (verdict !== 'open' && verdict !== OVERDUE) return verdict;
    if (deadline.passed) return 'unknown';
    await sleep(Math.min(pause, deadline.remaining));
  }
}

async function look(rescue: Query, admission: Admission): Promise<Outcome | 'open'> {
  await rescue(END_BACKEND, [admission.pid, admission.xid, admission.epoch ?? null]);
  const [row] = await rescue(EVIDENCE, [admission.key, admission.xid]);
  if (row === undefined) return 'open';
  return judge(admission, {
    status: (row['status'] as Evidence['status'] | null) ?? undefined,
    epoch: (row['epoch'] as string | null) ?? undefined,
    born: row['born'] === null ? undefined : BigInt(row['born'] as string),
    turns: BigInt((row['turns'] as string | null) ?? 0),
    attempts: (row['attempts'] as string[] | null) ?? [],
  });
}

/** The rule of the outcome. `open`: the transaction has not ended yet, look again. */
export function judge(admission: Admission, evidence: Evidence): Outcome | 'open' {
  const sameEpoch = admission.epoch !== undefined && admission.epoch === evidence.epoch;
  switch (evidence.status) {
    case 'aborted':
    case 'future':
      // Ours did not commit, whoever's the xid is now: one that had committed is never given out again.
      return 'aborted';
    case 'in progress':
      // In another epoch this is a new transaction under an xid that was given out again, so ours is lost.
      return admission.epoch === undefined || sameEpoch ? 'open' : 'aborted';
    case 'committed':
      if (sameEpoch) return 'committed';
  }
  return judgeByHistory(admission, evidence);
}

/**
 * After a crash 'committed' may be another transaction's: an xid that was not flushed is given out again. The
 * attempt id in the key's row, written by the transaction itself, cannot be.
 */
function judgeByHistory(admission: Admission, { born, turns, attempts }: Evidence): Outcome {
  // No row, or one younger than our token: ours may have been deleted since, as idle.
  if (born === undefined || born >= admission.token) return 'unknown';
  if (attempts.includes(admission.attempt)) return 'committed';
  const turnsSince = turns - admission.turn;
  return turnsSince < REMEMBERED ? 'aborted' : 'unknown';
}
