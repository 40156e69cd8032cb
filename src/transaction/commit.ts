import { Backoff } from '../base/backoff.js';
import { type Alarm, Deadline, OVERDUE, sleep, within } from '../base/clock.js';
import { CommitUnknownError } from '../base/errors.js';
import type { Reply } from '../base/reply.js';
import type { Connection, Query, StatementResult } from '../database/database.js';
import { END_BACKEND, EVIDENCE } from '../database/sql.js';
import { IDLE_IN_TRANSACTION_TIMEOUT, TRANSACTION_TIMEOUT } from '../database/sql-states.js';
import type { Admission } from './admission.js';
import type { CallContext } from './call.js';
import { commitFailed, commitTooSlow, connectionClosed, statementFailed } from './rolled-back.js';

type Verdict = 'committed' | 'aborted' | 'unknown';

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

/** SQLSTATE classes that a server also sends while it shuts down. They do not tell whether COMMIT took effect. */
const INCONCLUSIVE_CLASSES: ReadonlySet<string> = new Set(['08', '53', '57', '58', 'XX']);
/**
 * SQLSTATEs with which Postgres ends the session of a silent client, before a COMMIT that is late arrives. Nothing was
 * committed, and the key may have another holder by now.
 */
const ENDED_FOR_TIME: ReadonlySet<string> = new Set([IDLE_IN_TRANSACTION_TIMEOUT, TRANSACTION_TIMEOUT]);
/** COMMIT gets the rest of the work's timeout, and at least this; milliseconds. */
export const LEAST_COMMIT_TIME = 1_000;
/** How long to look for the outcome of a COMMIT without an answer; milliseconds. */
export const OUTCOME_TIME = 15_000;
/** Least time for one look, even if the deadline has passed; milliseconds. */
const LEAST_LOOK = 1_000;
/** First and longest pause between two looks; milliseconds. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 250;

/** Whether Postgres itself refused the COMMIT with this SQLSTATE, so that the transaction was rolled back. */
function isCommitRefused(code: string | undefined): boolean {
  return code !== undefined && !INCONCLUSIVE_CLASSES.has(code.slice(0, 2)) && !ENDED_FOR_TIME.has(code);
}

/** Why a transaction has not committed, as far as is known. `isUnknown`: nobody can say whether it has. */
interface Failure {
  readonly error: unknown;
  readonly isUnknown?: boolean;
  /** The SQLSTATE with which Postgres has refused the COMMIT; the database client still rolls back. */
  readonly refusedBy?: string | undefined;
}

/** A COMMIT that has been sent. */
interface SentCommit {
  readonly connection: Connection;
  readonly admission: Admission;
  readonly answer: Reply<StatementResult>;
  /** Runs out when there is no answer for `time`; milliseconds. */
  readonly alarm: Alarm;
  readonly time: number;
}

/**
 * Finds out what became of a COMMIT. Its answer is raced against a timer. The command tag tells the outcome, without an
 * answer the evidence in Postgres does. Never rejects; `undefined`: it has committed.
 *
 * @param failed the first failure of a statement of the work.
 */
export async function failureOfCommit(
  call: CallContext,
  { connection, admission, answer, alarm, time }: SentCommit,
  failed: () => unknown,
): Promise<Failure | undefined> {
  const { database, leases } = call;
  const said = await new Promise<{ readonly tag?: string; readonly error?: unknown }>((resolve) => {
    alarm.set(time, () => resolve({}));
    answer.listen(resolve, (error) => resolve({ error }));
  });
  if (said.tag !== undefined) {
    return said.tag === 'COMMIT' ? undefined : { error: statementFailed(leases.key, failed()) };
  }
  const code = database.sqlState(said.error);
  if (isCommitRefused(code)) return { error: said.error, refusedBy: code };
  const failure = await failureOfLostCommit(call, admission, said.error);
  // Whoever has ended its session may take its lease, too: the next caller must not have that.
  if (failure) leases.show();
  connection.destroy();
  return failure;
}

/**
 * The failure of a transaction whose COMMIT got no answer; `undefined` if it has committed.
 *
 * @param error what came in place of the answer; `undefined` if nothing came in time.
 */
async function failureOfLostCommit(
  call: CallContext,
  admission: Admission,
  error: unknown,
): Promise<Failure | undefined> {
  const { database, parts, leases, options } = call;
  let wasRunning = false;
  const outcome = await resolveOutcome(database.rescue, admission, new Deadline(OUTCOME_TIME), () => {
    wasRunning = true;
  });
  parts.emit({ type: 'commit-resolved', key: leases.key, outcome });
  if (outcome === 'committed') return undefined;
  if (outcome === 'unknown') {
    return { error: new CommitUnknownError(leases.key, admission.xid, error), isUnknown: true };
  }
  // COMMIT had arrived, so the connection was not what failed. No `statement_timeout` covers COMMIT.
  if (error === undefined && wasRunning) {
    return { error: commitTooSlow(leases.key, options.timeout, LEAST_COMMIT_TIME) };
  }
  return { error: database.isStatementError(error) ? commitFailed(leases.key, error) : connectionClosed(call, error) };
}

/**
 * Finds out whether a transaction whose COMMIT got no answer has committed.
 *
 * Its backend is ended before each look, so that a COMMIT that is still on its way cannot take effect after it.
 *
 * @param onEnded called when a backend was ended whose COMMIT was running: Postgres had received it.
 */
export async function resolveOutcome(
  rescue: Query,
  admission: Admission,
  deadline: Deadline,
  onEnded?: () => void,
): Promise<Verdict> {
  const backoff = new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
  for (;;) {
    // A look may take long: the rescue connection sends one statement at a time, and other calls may have queued
    // before.
    const looking = look(rescue, admission, onEnded).catch(() => 'open' as const);
    const verdict = await within(looking, Math.max(LEAST_LOOK, deadline.remaining));
    if (verdict !== 'open' && verdict !== OVERDUE) return verdict;
    if (deadline.passed) return 'unknown';
    await sleep(Math.min(backoff.next(), deadline.remaining));
  }
}

async function look(rescue: Query, admission: Admission, onEnded?: () => void): Promise<Verdict | 'open'> {
  const [backend] = await rescue(END_BACKEND, [admission.pid, admission.xid, admission.epoch ?? null]);
  if (backend?.['working'] === true) onEnded?.();
  let evidence = await evidenceOf(rescue, admission);
  // In another crash epoch the key's row decides. Where the role's default is REPEATABLE READ, it was read by a snapshot
  // from before the status, and the transaction may have committed in between. A second statement reads what that left.
  if (evidence?.status === 'committed' && !isSameEpoch(admission, evidence))
    evidence = await evidenceOf(rescue, admission);
  return evidence === undefined ? 'open' : judge(admission, evidence);
}

async function evidenceOf(rescue: Query, { key, xid }: Admission): Promise<Evidence | undefined> {
  const [row] = await rescue(EVIDENCE, [key, xid]);
  if (row === undefined) return undefined;
  return {
    status: (row['status'] as Evidence['status'] | null) ?? undefined,
    epoch: (row['epoch'] as string | null) ?? undefined,
    born: row['born'] === null ? undefined : BigInt(row['born'] as string),
    turns: BigInt((row['turns'] as string | null) ?? 0),
    attempts: (row['attempts'] as string[] | null) ?? [],
  };
}

function isSameEpoch(admission: Admission, evidence: Evidence): boolean {
  return admission.epoch !== undefined && admission.epoch === evidence.epoch;
}

/** Decides the outcome from the evidence. `open`: the transaction has not ended yet, look again. */
export function judge(admission: Admission, evidence: Evidence): Verdict | 'open' {
  switch (evidence.status) {
    case 'aborted':
    case 'future':
      // This transaction did not commit, even if the xid now belongs to another one: Postgres never assigns the xid of
      // a committed transaction again.
      return 'aborted';
    case 'in progress':
      // In another crash epoch too: after a crash the xid belongs to a new transaction, but the epoch also changes when
      // its row is deleted or restored, while this transaction is still running. Its end decides between the two.
      return 'open';
    case 'committed':
      if (isSameEpoch(admission, evidence)) return 'committed';
  }
  return judgeByHistory(admission, evidence);
}

/**
 * After a crash, 'committed' may refer to another transaction, because an xid that was not flushed is assigned again.
 * The attempt id in the key's row is unique.
 */
function judgeByHistory(admission: Admission, { born, turns, attempts }: Evidence): Verdict {
  // No row, or a row created after this token was drawn: the row with this attempt may have been deleted as idle.
  if (born === undefined || born >= admission.token) return 'unknown';
  if (attempts.includes(admission.attempt)) return 'committed';
  const turnsSince = turns - admission.turn;
  return turnsSince < REMEMBERED ? 'aborted' : 'unknown';
}
