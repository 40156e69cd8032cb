import { randomUUID } from 'node:crypto';
import { Deadline, now, OVERDUE, within } from '../base/clock.js';
import { LockUnavailableError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import type { Database, Query, Row } from '../database/database.js';
import { LAST_ADMISSIONS, SERVER_TIME } from '../database/sql.js';
import type { ResolvedLockOptions, SeenState } from '../options/options.js';
import type { Admission } from '../transaction/admission.js';
import { type KeyState, type LeaseStore, MOST_WAITERS } from '../waiting/store.js';
import type { Parts } from './parts.js';
import { register, unleased } from './register.js';

/** The state of a key, for operators. */
export interface LockState extends KeyState {
  /**
   * The names of the processes that wait (option `name`), the first of the queue first: at most 100. `undefined` in place
   * of a name that is not known. Empty where nobody waits. With several Redis nodes there is no order among them.
   */
  readonly waiters: readonly (string | undefined)[];
  /**
   * The last token that was admitted and committed; `undefined` if there is none, or if its row was deleted as idle.
   */
  readonly token: bigint | undefined;
  /** The number of admissions since the key's row was created. */
  readonly turns: bigint;
  readonly admittedAt: Date | undefined;
  /**
   * The transaction that works under the key. Visible only to a role that may see its backend, and not during the first
   * transaction of a key.
   */
  readonly transaction: { readonly pid: number; readonly since: Date } | undefined;
}

/** How many keys one statement asks for. */
const PAGE = 1_000;
/**
 * A transaction that began after the holder was found is of a later holder, or of another `forceRelease`, and ends by itself
 * in a moment. It is ended only if it is older than this; milliseconds.
 */
const LATER_MAY_LAST = 1_000;
/** How long the time of the server is waited for; milliseconds. */
const SERVER_TIME_WITHIN = 500;

export async function inspect(store: LeaseStore, query: Query, key: string): Promise<LockState> {
  const [state] = await describe([await store.inspect(key, MOST_WAITERS).catch(unavailable(key))], query);
  return state as LockState;
}

/** The keys that are held or waited for, and those of `recent` that are not. */
export async function list(
  store: LeaseStore,
  query: Query,
  recent: readonly string[] = [],
): Promise<readonly LockState[]> {
  const inUse = await store.list().catch(unavailable());
  const seen = new Set(inUse.map(({ key }) => key));
  const idle = recent.filter((key) => !seen.has(key));
  const free = idle.map((key): KeyState => ({ key, holder: undefined, expiresIn: 0, waiting: 0 }));
  return await describe([...inUse, ...free], query);
}

/** What was done to take a key from its holder. */
export interface Taken {
  /** The holder that it was taken from; `undefined` if nobody had the lease. */
  readonly holder: string | undefined;
  /** A new token, committed, so that this holder's later writes are stale; `undefined` if nobody ever locked the key. */
  readonly token: bigint | undefined;
  /** The backends that were ended because they had the key's row. */
  readonly ended: readonly number[];
  readonly leaseTaken: boolean;
}

/** Rolls the admission back. */
class NeverLocked extends Error {}

/**
 * Takes a key from its holder: ends the transaction that works under it, commits a higher token, so that the holder's
 * later writes are stale, and passes the lease on. With `seen`, does nothing if another holder has the key by now, and
 * resolves to `undefined`. A key that nobody has and nobody ever had gets no row: its name may be mistyped.
 *
 * @throws LockTimeoutError if transactions keep the key's row. LockUnavailableError.
 */
export async function take<Tx>(
  parts: Parts,
  store: LeaseStore,
  database: Database<Tx>,
  key: string,
  options: ResolvedLockOptions,
  seen?: SeenState,
): Promise<Taken | undefined> {
  const holders = { keys: [key], holders: [randomUUID()], leaseTime: options.leaseTime };
  // With `seen`, no later transaction is ended, however old: it is not of the holder that was seen.
  const laterMayLast = seen === undefined ? LATER_MAY_LAST : Number.POSITIVE_INFINITY;
  const ended: number[] = [];
  const emit: Emit = (event) => {
    if (event.type === 'backend-ended') ended.push(event.pid);
    parts.emit(event);
  };
  parts.room.throwIfClosing(key);
  // Closing the client waits for it, because the transaction would begin on the pool of a closed client.
  const over = parts.room.begin();
  try {
    const began = now();
    const foundAt = await serverTime(database);
    // Without it, by the clock of this process, which counts the time that the statement is on its way, too.
    const age = () => (foundAt === undefined ? Math.min(now() - began, laterMayLast) : laterMayLast);
    const leases = unleased(holders, age);
    const { holder, problem } = await store.inspect(key).catch(unavailable(key));
    if (seen !== undefined && seen.holder !== holder) return undefined;
    const hasLease = holder !== undefined || problem !== undefined;
    const deadline = new Deadline(options.waitTime);
    const call = { database, options };
    const check = ({ turn }: Admission) => {
      if (turn === 1n && !hasLease && ended.length === 0) throw new NeverLocked();
    };
    const [token] = await register({ ...parts, emit }, call, leases, deadline, { takes: { foundAt }, check }).catch(
      (error: unknown) => {
        if (error instanceof NeverLocked) return [];
        throw error;
      },
    );
    // Only from the holder that was seen before. One that has got the lease since may be healthy, and not admitted yet.
    const leaseTaken = hasLease && (await store.force(key, holder ?? '').catch(unavailable(key, TOKEN_RAISED)));
    if (holder !== undefined) parts.room.markLost(holder);
    return { holder, token, ended, leaseTaken };
  } finally {
    over();
  }
}

/** `undefined` without an answer: the rescue connection may not come about where Postgres has no connection left. */
async function serverTime({ rescue }: Pick<Database<unknown>, 'rescue'>): Promise<number | undefined> {
  const asked = rescue(SERVER_TIME, []).catch(() => []);
  const rows = await within(asked, SERVER_TIME_WITHIN);
  const [row] = rows === OVERDUE ? [] : rows;
  return row && Number(row['time']);
}

/** What is done where the lease could not be taken. */
export const TOKEN_RAISED = 'The transaction at work was ended and the token raised, but the lease stays to its end';

function unavailable(key?: string, done?: string): (error: unknown) => never {
  return (error) => {
    throw new LockUnavailableError(key, error, { done });
  };
}

async function describe(keys: readonly KeyState[], query: Query): Promise<readonly LockState[]> {
  const states: LockState[] = [];
  for (let from = 0; from < keys.length; from += PAGE) {
    const page = keys.slice(from, from + PAGE);
    const rows = await query(LAST_ADMISSIONS, [JSON.stringify(page.map(({ key }) => key))]);
    states.push(...page.map((state, index) => joined(state, rows[index] ?? {})));
  }
  return states;
}

function joined(state: KeyState, row: Row): LockState {
  const { token, turns, admitted_at, pid, working_since } = row as Record<string, string | number | null>;
  return {
    ...state,
    waiters: state.waiters ?? [],
    token: token == null ? undefined : BigInt(token),
    turns: BigInt(turns ?? 0),
    admittedAt: admitted_at == null ? undefined : new Date(admitted_at),
    transaction: pid == null ? undefined : { pid: Number(pid), since: new Date(working_since as string) },
  };
}
