import { type Deadline, OVERDUE, sleep, within } from '../base/clock.js';
import type { Query } from '../database/database.js';
import { END_BACKEND, EVIDENCE } from '../database/sql.js';
import type { Admission } from './admission.js';

export type Outcome = 'committed' | 'aborted' | 'unknown';

/** What Postgres knows of a transaction and of its key's row. */
export interface Evidence {
  /** `future`: the server has not assigned the xid. `undefined`: the xid is too old to be looked up. */
  readonly status: 'in progress' | 'committed' | 'aborted' | 'future' | undefined;
  readonly epoch: string | undefined;
  /** The token at which the key's row was created; `undefined` if the key has no row. */
  readonly born: bigint | undefined;
  readonly turns: bigint;
  readonly attempts: readonly string[];
}

/** How many attempt ids a key's row keeps. The `admit` function of the migration keeps the same number. */
const REMEMBERED = 16n;

/** Least time for one look, even if the deadline has passed; milliseconds. */
const LEAST_LOOK = 1_000;
/** First and longest pause between two looks; milliseconds. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 250;

/**
 * Finds out whether a transaction whose COMMIT got no answer has committed.
 *
 * Its backend is ended before each look, so that a COMMIT that is still on its way cannot take effect after it.
 */
export async function resolveOutcome(rescue: Query, admission: Admission, deadline: Deadline): Promise<Outcome> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    // A look may take long: the rescue connection sends one statement at a time, and other calls may have queued
    // before.
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

/** Decides the outcome from the evidence. `open`: the transaction has not ended yet, look again. */
export function judge(admission: Admission, evidence: Evidence): Outcome | 'open' {
  const sameEpoch = admission.epoch !== undefined && admission.epoch === evidence.epoch;
  switch (evidence.status) {
    case 'aborted':
    case 'future':
      // This transaction did not commit, even if the xid now belongs to another one: Postgres never assigns the xid of
      // a committed transaction again.
      return 'aborted';
    case 'in progress':
      // In another crash epoch, the xid belongs to a new transaction, so this one was lost in the crash.
      return admission.epoch === undefined || sameEpoch ? 'open' : 'aborted';
    case 'committed':
      if (sameEpoch) return 'committed';
  }
  return judgeByHistory(admission, evidence);
}

/**
 * After a crash, 'committed' may refer to another transaction, because an xid that was not flushed is assigned again.
 * The attempt id in the key's row is unique.
 */
function judgeByHistory(admission: Admission, { born, turns, attempts }: Evidence): Outcome {
  // No row, or a row created after this token was drawn: the row with this attempt may have been deleted as idle.
  if (born === undefined || born >= admission.token) return 'unknown';
  if (attempts.includes(admission.attempt)) return 'committed';
  const turnsSince = turns - admission.turn;
  return turnsSince < REMEMBERED ? 'aborted' : 'unknown';
}
