import { LAST_ADMISSIONS } from '../../database/sql.js';
import type { KeyState } from '../../lease/store.js';
import type { PostgresServer } from '../servers/postgres.js';

/** A key as both servers know it; as `$locks.inspect` shows it, in JSON. */
export interface LockRow {
  readonly key: string;
  readonly holder: string | null;
  /** The name of its process. */
  readonly process: string | null;
  /** Milliseconds. */
  readonly expiresIn: number;
  /** Processes. */
  readonly waiting: number;
  /** What Redis has in the place of the lease or the queue; `unlock` deletes it. */
  readonly problem?: string;
  /** A number of 64 bits. */
  readonly token: string | null;
  readonly turns: string;
  readonly admittedAt: Date | null;
  /** The one that is at work under the key; seen only by a role that may look at it. */
  readonly transaction: { readonly pid: number; readonly since: Date } | null;
}

interface Admitted {
  readonly token: string | null;
  readonly turns: string | null;
  readonly admitted_at: string | null;
  readonly pid: number | null;
  readonly working_since: string | null;
}

/** Many keys at once: a round trip for each would be minutes where the server is far and the keys are thousands. */
const PAGE = 1_000;

/** Adds what Postgres knows of them to what Redis does. */
export async function describe(keys: readonly KeyState[], database: PostgresServer): Promise<LockRow[]> {
  const states: LockRow[] = [];
  for (let from = 0; from < keys.length; from += PAGE) {
    const page = keys.slice(from, from + PAGE);
    const rows = await database.query<Admitted>(LAST_ADMISSIONS, [JSON.stringify(page.map(({ key }) => key))]);
    states.push(...page.map((state, at) => joined(state, rows[at])));
  }
  return states;
}

/** The last token that was committed for a key. */
export async function lastToken(key: string, database: PostgresServer): Promise<string | null> {
  return (await database.query<Admitted>(LAST_ADMISSIONS, [JSON.stringify([key])]))[0]?.token ?? null;
}

function joined({ key, holder, process, expiresIn, waiting, problem }: KeyState, row: Admitted | undefined): LockRow {
  const { token = null, turns, admitted_at = null, pid = null, working_since = null } = row ?? {};
  const transaction = pid === null || working_since === null ? null : { pid, since: new Date(working_since) };
  return {
    key,
    holder: holder ?? null,
    process: process ?? null,
    expiresIn,
    waiting,
    ...(problem !== undefined && { problem }),
    token,
    turns: turns ?? '0',
    admittedAt: admitted_at === null ? null : new Date(admitted_at),
    transaction,
  };
}
