import { LAST_ADMISSIONS } from '../../database/sql.js';
import type { KeyState } from '../../lease/store.js';
import type { PostgresServer } from '../servers/postgres.js';

/** The state of a key in both servers, as JSON. The fields are those of `$locks.inspect`. */
export interface LockRow {
  readonly key: string;
  readonly holder: string | null;
  /** The name of its process. */
  readonly process: string | null;
  /** Milliseconds. */
  readonly expiresIn: number;
  /** Number of processes. */
  readonly waiting: number;
  /** Their names, the first of the queue first, at most 100; `null` in place of a name that is not known. */
  readonly waiters: readonly (string | null)[];
  /** What Redis has under the key's names that is neither a lease nor a queue; `unlock` deletes it. */
  readonly problem?: string;
  /** A 64-bit number, as a string. */
  readonly token: string | null;
  readonly turns: string;
  readonly admittedAt: Date | null;
  /** The transaction that works under the key. Visible only to a role that may see its backend. */
  readonly transaction: { readonly pid: number; readonly since: Date } | null;
}

interface Admitted {
  readonly token: string | null;
  readonly turns: string | null;
  readonly admitted_at: string | null;
  readonly pid: number | null;
  readonly working_since: string | null;
}

/**
 * How many keys one query asks for: a round trip for each key would take minutes for thousands of keys on a distant
 * server.
 */
const PAGE = 1_000;

/** Adds Postgres's state to that of Redis. */
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

function joined(state: KeyState, row: Admitted | undefined): LockRow {
  const { key, holder, process, expiresIn, waiting, waiters = [], problem } = state;
  const { token = null, turns, admitted_at = null, pid = null, working_since = null } = row ?? {};
  const transaction = pid === null || working_since === null ? null : { pid, since: new Date(working_since) };
  return {
    key,
    holder: holder ?? null,
    process: process ?? null,
    expiresIn,
    waiting,
    waiters: waiters.map((name) => name ?? null),
    ...(problem !== undefined && { problem }),
    token,
    turns: turns ?? '0',
    admittedAt: admitted_at === null ? null : new Date(admitted_at),
    transaction,
  };
}
