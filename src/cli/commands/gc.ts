import type { Context } from '../context.js';
import { codeOf, Misuse, Problem } from '../problem.js';
import { type PostgresServer, withPostgres } from '../servers/postgres.js';
import { type DatabaseOptions, urlOf } from '../servers/urls.js';
import { visible } from '../visible.js';
import { checkedKey } from './lock-state.js';

export interface GcOptions extends DatabaseOptions {
  readonly olderThan: string;
  /** The key of a job whose last run is to be forgotten, in place of all else. */
  readonly run?: string;
  readonly dryRun?: boolean;
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };
/** A younger row may still be needed to prove that a lost COMMIT took effect; seconds. */
const FLOOR = 86_400;
const PAGE = 5_000;

/**
 * Deletes one page of keys, in their order. A locked row is in use, so it is skipped. The DELETE tests the age again,
 * on the current version of the row.
 */
const COLLECT = `
WITH page AS (SELECT key FROM fenced_lock.admission WHERE key > $1 ORDER BY key LIMIT ${PAGE}),
idle AS (
  SELECT a.key FROM fenced_lock.admission AS a JOIN page USING (key)
  WHERE a.admitted_at < now() - make_interval(secs => $2) FOR UPDATE OF a SKIP LOCKED
),
gone AS (
  DELETE FROM fenced_lock.admission AS a USING idle
  WHERE a.key = idle.key AND a.admitted_at < now() - make_interval(secs => $2) RETURNING 1
)
SELECT (SELECT key FROM page ORDER BY key DESC LIMIT 1) AS last, (SELECT count(*)::integer FROM gone) AS rows`;

const COUNT = `SELECT count(*)::integer AS rows FROM fenced_lock.admission
WHERE admitted_at < now() - make_interval(secs => $1)`;

/** Longer than the longest interval of `$oncePer`, so that no mark keeps a run away any more. */
const LONGEST_INTERVAL = 25 * 86_400;
/** Of one key, or of all keys those that no caller's interval reaches, also ahead of the clock. */
const RUNS = `FROM fenced_lock.last_run WHERE CASE WHEN $2::text IS NULL
  THEN abs(extract(epoch FROM now() - ran_at)) > $1 ELSE key = $2 END`;
const COLLECT_RUNS = `WITH gone AS (DELETE ${RUNS} RETURNING 1) SELECT count(*)::integer AS rows FROM gone`;
const COUNT_RUNS = `SELECT count(*)::integer AS rows ${RUNS}`;

/** Deletes the rows of keys that nobody has locked for a while. */
export async function gc(context: Context, options: GcOptions): Promise<void> {
  const { olderThan, dryRun = false } = options;
  const seconds = age(olderThan);
  const idle = Math.max(seconds, LONGEST_INTERVAL);
  const key = options.run === undefined ? undefined : checkedKey(options.run);
  const { urls } = await urlOf(context, options, 'database');
  await withPostgres(context, urls[0], async (database) => {
    const count = async (sql: string, ...values: unknown[]) =>
      (await database.query<{ rows: number }>(sql, values))[0]?.rows ?? 0;
    const collected = async () => {
      const rows = key === undefined ? await (dryRun ? count(COUNT, seconds) : collect(database, seconds)) : 0;
      return { rows, runs: await count(dryRun ? COUNT_RUNS : COLLECT_RUNS, idle, key) };
    };
    const { rows, runs } = await collected().catch((error: unknown) => {
      throw codeOf(error) === '42501' ? notOwner(database) : error;
    });
    if (key !== undefined) {
      const what = `the last run of ${visible(key)}`;
      const done = dryRun ? `Would forget ${what}` : `Forgot ${what}, which may run again now,`;
      context.say(`${runs === 0 ? `There is no mark of ${what}` : done} in ${database.shown}.`);
    } else {
      const keys = `${rows} ${rows === 1 ? 'row' : 'rows'} of keys idle for more than ${olderThan}`;
      const jobs = `, and ${runs} of jobs that have not run for ${Math.floor(idle / 86_400)} days,`;
      context.say(`${dryRun ? 'Would delete' : 'Deleted'} ${keys}${runs === 0 ? '' : jobs} in ${database.shown}.`);
    }
    context.document({ command: 'gc', ok: true, dryRun, rows, runs });
  });
}

/** @throws Misuse */
function age(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text) ?? [];
  const seconds = Number(amount) * (UNITS[unit ?? ''] ?? Number.NaN);
  if (seconds >= FLOOR && seconds < 1e10) return seconds;
  throw new Misuse(`--older-than must be a time such as 1d, 36h or 2w, and at least 1d; it is ${text}.`);
}

async function collect(database: PostgresServer, seconds: number): Promise<number> {
  let total = 0;
  for (let last: string | null = ''; last !== null; ) {
    const [page]: Array<{ last: string | null; rows: number }> = await database.query(COLLECT, [last, seconds]);
    total += page?.rows ?? 0;
    last = page?.last ?? null;
  }
  return total;
}

const notOwner = ({ shown }: PostgresServer) =>
  new Problem(
    `The role of ${shown} may not delete admission rows: give the URL of the role that owns the schema fenced_lock.`,
  );
