import { randomUUID } from 'node:crypto';
import { Deadline, OVERDUE, within } from '../../base/clock.js';
import { END_BLOCKERS, OWN_TRANSACTION, SERVER_TIME } from '../../database/sql.js';
import { admit } from '../../transaction/admission.js';
import { codeOf, Problem } from '../problem.js';
import type { PostgresServer, ServerQuery } from '../servers/postgres.js';
import { visible } from '../visible.js';
import { lastToken } from './state.js';

export interface Raised {
  /** The last token that was committed before; `null` if the key had none. */
  readonly before: string | null;
  readonly after: string;
  /** The backends that were ended because they blocked the key's row. */
  readonly ended: readonly number[];
}

interface OwnTransaction {
  readonly pid: number;
  readonly began: string;
}

/** How long to try; milliseconds. */
const WAIT_TIME = 10_000;
/** How long one admission waits for the key's row; milliseconds. */
const PATIENCE = 500;
/** Grace period before blocking backends are ended; milliseconds. */
const BLOCKED_FOR = 50;
/**
 * A transaction that began after the holder was found is a later holder's, which is well: on a busy key it ends by itself
 * in a moment. It is ended only if it is older than this; milliseconds.
 */
const LATER_MAY_LAST = 500;
const LOCK_NOT_AVAILABLE = '55P03';
const INSUFFICIENT_PRIVILEGE = '42501';

/** Without the right to see another role's session, Postgres shows only its role. */
const IN_THE_WAY = `SELECT b.pid, a.usename AS role, current_user::text AS own
FROM unnest(pg_blocking_pids($1::integer)) AS b(pid)
JOIN pg_stat_activity AS a ON a.pid = b.pid
WHERE a.usename IS NOT NULL AND a.state IS NULL`;

/** Whether a transaction writes to the table, as one that has inserted the first row of a key. */
const WRITERS = `SELECT EXISTS (
  SELECT FROM pg_locks AS l
  WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.relation = 'fenced_lock.admission'::regclass
    AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
) AS some`;

export async function serverTime(database: PostgresServer): Promise<number> {
  const [row] = await database.query<{ time: number }>(SERVER_TIME);
  return row?.time ?? 0;
}

/** Rolls the admission back. */
class NeverLocked extends Error {}

/**
 * Commits a new token for the key, so that its holder's later writes are stale. Transactions that lock the key's row
 * are ended over `aside`, a second connection. `foundAt`: a moment before its holder was looked for, by `serverTime`.
 * Transactions that began after it get some time to end by themselves.
 *
 * @throws Problem if they may not be ended, or do not end.
 */
export function raiseToken(
  database: PostgresServer,
  aside: PostgresServer,
  key: string,
  foundAt: number,
): Promise<Raised> {
  return raise({ database, aside, key, foundAt }, true);
}

/**
 * The same for a key that nobody has in Redis. Changes nothing and returns `undefined` if no transaction has the key
 * either, and none has ever committed under it: its name may be mistyped.
 *
 * @throws Problem as `raiseToken` does.
 */
export async function raiseTokenIfUsed(
  database: PostgresServer,
  aside: PostgresServer,
  key: string,
  foundAt: number,
): Promise<Raised | undefined> {
  // Nobody sees the first row of a key before it is committed, but the lock on the table is seen. The locks are read
  // first: a transaction that was over by then has its row in what is read next.
  const [writers] = await database.query<{ some: boolean }>(WRITERS);
  if (writers?.some === false && (await lastToken(key, database)) === null) return undefined;
  try {
    return await raise({ database, aside, key, foundAt }, false);
  } catch (error) {
    if (error instanceof NeverLocked) return undefined;
    throw error;
  }
}

interface Target {
  readonly database: PostgresServer;
  readonly aside: PostgresServer;
  readonly key: string;
  readonly foundAt: number;
}

async function raise(target: Target, evenIfNeverLocked: boolean): Promise<Raised> {
  const { database, aside, key } = target;
  const deadline = new Deadline(WAIT_TIME);
  const ended = new Set<number>();
  for (;;) {
    try {
      const raised = await database.transaction('BEGIN ISOLATION LEVEL READ COMMITTED', async (query) => {
        const { token } = await admission(query, target, ended);
        // While this transaction has the row, no other one commits a token. Read over `aside`, which does not see the
        // new token yet.
        const before = await lastToken(key, aside);
        if (before === null && ended.size === 0 && !evenIfNeverLocked) throw new NeverLocked();
        return { before, after: String(token) };
      });
      return { ...raised, ended: [...ended] };
    } catch (error) {
      if (codeOf(error) !== LOCK_NOT_AVAILABLE) throw error;
      if (deadline.passed) {
        throw new Problem(
          `The key ${visible(key)} could not be locked within ${WAIT_TIME / 1_000} s: transactions keep its row in ` +
            `${database.shown}${ended.size > 0 ? `, though the backends ${[...ended].join(', ')} were ended` : ''}.`,
          {
            cause: error,
            remedy:
              'Run it again. If that does not help, look into pg_prepared_xacts: only ROLLBACK PREPARED ends a prepared transaction.',
          },
        );
      }
    }
  }
}

async function admission(query: ServerQuery, target: Target, ended: Set<number>) {
  const [own] = await query<OwnTransaction>(OWN_TRANSACTION);
  const admitted = admit(query, {
    keys: [target.key],
    holders: [randomUUID()],
    leaseTime: WAIT_TIME,
    workTime: WAIT_TIME,
    waitTime: PATIENCE,
    durable: true,
  });
  const helped = async () => {
    if ((await within(admitted, BLOCKED_FOR)) === OVERDUE) await endBlockers(target, own, ended);
  };
  const [answer] = await Promise.all([admitted, helped()]);
  return answer;
}

async function endBlockers(
  { aside, foundAt }: Target,
  own: OwnTransaction | undefined,
  ended: Set<number>,
): Promise<void> {
  try {
    const values = [own?.pid, LATER_MAY_LAST, own?.began, null, foundAt];
    const rows = await aside.query<{ pid: number; ended: boolean }>(END_BLOCKERS, values);
    for (const row of rows) if (row.ended) ended.add(row.pid);
    if (rows.length > 0) return;
  } catch (error) {
    if (codeOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new Problem(
      `The role of ${aside.shown} may not end the transaction that has the key's row. The key was not unlocked: ${REMEDY}.`,
      { cause: error },
    );
  }
  const [hidden] = await aside.query<{ pid: number; role: string; own: string }>(IN_THE_WAY, [own?.pid]);
  if (hidden === undefined) return;
  throw new Problem(
    `Backend ${hidden.pid} of the role ${visible(hidden.role)} has the key's row, and the role ${visible(hidden.own)} ` +
      `may not end it. The key was not unlocked: ${REMEDY}.`,
  );
}

const REMEDY =
  "give the URL of the application's role, or of one that is a member of it, or of pg_signal_backend and pg_read_all_stats";
