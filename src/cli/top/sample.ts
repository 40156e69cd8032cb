import { now } from '../../base/clock.js';
import { type NotedRefusal, REFUSALS_KEPT } from '../../base/refusal.js';
import { RefusalLog, type ShownRefusal } from '../../base/refusal-log.js';
import type { KeyState } from '../../lease/store.js';
import { describe, type LockRow } from '../locks/state.js';
import type { Servers } from '../servers/both.js';
import type { PostgresServer } from '../servers/postgres.js';
import type { Locks } from '../servers/redis-server.js';

/** A key, as `top` shows it. */
export interface TopRow {
  readonly key: string;
  /** Who has it: the name of its process where that is known, else its random id. */
  readonly holder: string | undefined;
  /** The random id of the holder, which tells one turn of a process from the next. */
  readonly holderId: string | undefined;
  /** Whether it is just offered to the process that is next, which has not taken it yet. */
  readonly isOffered?: boolean;
  /** Milliseconds. */
  readonly leaseLeft: number;
  /** Processes. */
  readonly waiting: number;
  /** Their names, the first of the queue first if there is one, at most 100; `null` in place of one that is not known. */
  readonly waiters: readonly (string | null)[];
  /** Whether they are in order, as they are but for several independent nodes. */
  readonly isInOrder: boolean;
  /** Turns a second since the sample before; `undefined` where there was none. */
  readonly heat: number | undefined;
  readonly transaction: Transaction | undefined;
}

/** What one look has found. */
export interface Sample {
  readonly rows: readonly TopRow[];
  /** For each server whose keys are missing: one sentence that says why. */
  readonly missing: readonly string[];
  /** Writes of all processes that were refused as stale; `undefined` if they cannot be read. */
  readonly refused: RefusedWrites | undefined;
}

export interface RefusedWrites {
  /** Those of the last hour, the oldest first, at most 100. */
  readonly last: readonly ShownRefusal[];
}

interface Transaction {
  readonly pid: number;
  /** As Postgres calls it, such as `idle in transaction`; `undefined` where this role may not know. */
  readonly state: string | undefined;
  /** Milliseconds. */
  readonly age: number;
}

/** How both servers are asked. */
export interface Asking {
  redis<T>(work: (locks: Locks) => Promise<T>): Promise<T>;
  postgres<T>(work: (database: PostgresServer) => Promise<T>): Promise<T>;
}

/** Over connections that somebody else keeps. */
export function askingOver({ locks, database }: Pick<Servers, 'locks' | 'database'>): Asking {
  return { redis: (work) => work(locks), postgres: (work) => work(database) };
}

/** Keys that are free at the moment are shown for so long, because a hot key often is; ms. */
const KEPT = 10_000;
const MOST_KEPT = 1_000;
/** How long an offer stands; milliseconds. That of `redis/store.ts`. */
const OFFER_TIME = 1_000;

const TRANSACTIONS = `SELECT pid, state, (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::float8 AS age
FROM pg_stat_activity WHERE pid = ANY($1::integer[]) AND xact_start IS NOT NULL`;

/** Looks at all keys, again and again, and at what has changed meanwhile. */
export class Sampler {
  readonly #ask: Asking;
  /** Keys that were in use lately, and when. */
  readonly #seen = new Map<string, number>();
  #before = new Map<string, bigint>();
  #beforeAt = 0;
  readonly #refusals = new RefusalLog();

  constructor(ask: Asking) {
    this.#ask = ask;
  }

  async sample(): Promise<Sample> {
    const { keys, missing, refusals, isInOrder } = await this.#ask.redis(lookAt);
    const at = now();
    const { states, transactions } = await this.#ask.postgres(async (database) => {
      const states = await describe([...keys, ...this.#free(keys, at)], database);
      return { states, transactions: await transactionsOf(states, database) };
    });
    const seconds = (at - this.#beforeAt) / 1_000;
    const rows = states.map((state) => this.#row(state, seconds, transactions, isInOrder));
    this.#remember(states, at);
    return { rows, missing, refused: this.#refused(refusals) };
  }

  #refused(read: readonly NotedRefusal[] | undefined): RefusedWrites | undefined {
    if (read === undefined) return undefined;
    this.#refusals.read(read);
    const since = Date.now() - REFUSALS_KEPT;
    return { last: this.#refusals.kept.filter(({ at }) => at > since) };
  }

  /** Those that were in use lately, and are not now. */
  #free(keys: readonly KeyState[], at: number): KeyState[] {
    const inUse = new Set(keys.map(({ key }) => key));
    for (const [key, since] of this.#seen) if (at - since > KEPT) this.#seen.delete(key);
    const free = [...this.#seen.keys()].filter((key) => !inUse.has(key)).slice(-MOST_KEPT);
    return free.map((key) => ({ key, holder: undefined, expiresIn: 0, waiting: 0 }));
  }

  #row(state: LockRow, seconds: number, transactions: ReadonlyMap<number, Transaction>, isInOrder: boolean): TopRow {
    const { key, holder, process, expiresIn, waiting, waiters, turns, transaction } = state;
    const before = this.#before.get(key);
    // A key that was not there before had no row, or was not looked at.
    const heat = before === undefined ? undefined : Math.max(0, Number(BigInt(turns) - before)) / seconds;
    // Leases have the names of their processes, and offers have none; nor have leases of an older version, which are longer.
    const isOffered = holder !== null && process === null && expiresIn <= OFFER_TIME;
    return {
      key,
      isOffered,
      holder: (holder === null ? null : process) ?? holder ?? undefined,
      holderId: holder ?? undefined,
      leaseLeft: expiresIn,
      waiting,
      waiters,
      isInOrder,
      heat,
      transaction: transaction === null ? undefined : transactions.get(transaction.pid),
    };
  }

  #remember(states: readonly LockRow[], at: number): void {
    for (const { key, holder, waiting, turns } of states) {
      const before = this.#before.get(key);
      if (holder === null && waiting === 0 && before === BigInt(turns)) continue;
      this.#seen.delete(key);
      this.#seen.set(key, at);
    }
    this.#before = new Map(states.map(({ key, turns }) => [key, BigInt(turns)]));
    this.#beforeAt = at;
  }
}

/** A user of Redis without the right to read refusals sees the keys all the same. */
async function lookAt(locks: Locks) {
  const reading = locks.refusals().catch(() => undefined);
  return { ...(await locks.list()), refusals: await reading, isInOrder: locks.isInOrder };
}

async function transactionsOf(
  states: readonly LockRow[],
  database: PostgresServer,
): Promise<ReadonlyMap<number, Transaction>> {
  const pids = states.flatMap(({ transaction }) => transaction?.pid ?? []);
  if (pids.length === 0) return new Map();
  const found = await database.query<Transaction & { state: string | null }>(TRANSACTIONS, [pids]);
  return new Map(found.map(({ pid, state, age }) => [pid, { pid, state: state ?? undefined, age }]));
}
