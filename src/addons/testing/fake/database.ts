import { Deadline, OVERDUE, within } from '../../../base/clock.js';
import { codeOf } from '../../../base/errors.js';
import { Reply } from '../../../base/reply.js';
import type {
  Beginning,
  ClientTransaction,
  ClientTransactionOptions,
  Committing,
  Conductor,
  Connection,
  Database,
  Hook,
  Place,
  Row,
  Statement,
  StatementResult,
} from '../../../database/database.js';
import * as SQL from '../../../database/sql.js';
import { ADMIN_SHUTDOWN, LOCK_NOT_AVAILABLE, SERIALIZATION_FAILURE } from '../../../database/sql-states.js';
import type { Schedule } from '../../../options/options.js';
import { FakeTransaction } from './transaction.js';

/** What Postgres has in the row of a key. */
interface KeyRow {
  readonly token: bigint;
  readonly holder: string;
  readonly turns: bigint;
}

/** The row of a key: as it was committed, and who has locked it. */
interface LockedRow {
  committed?: KeyRow;
  writer?: FakeConnection | undefined;
}

/** An error as Postgres gives it. */
class PostgresError extends Error {
  readonly code: string;
  readonly detail: string | undefined;

  constructor(code: string, message: string, detail?: string) {
    super(message);
    this.code = code;
    this.detail = detail;
  }
}

/**
 * The port to a database, without one: it admits transactions as the functions of the migration do, and knows nothing of
 * the application's rows.
 */
export class FakeDatabase implements Database<object> {
  readonly #rows = new Map<string, LockedRow>();
  /** The last committed run of each key of `$oncePer`; milliseconds since the Unix epoch. */
  readonly runs = new Map<string, number>();
  readonly #mock: object;
  readonly #transactions = new WeakMap<object, FakeTransaction>();
  #token = 0n;

  /** @param mock what stands for the client. */
  constructor(mock: object) {
    this.#mock = mock;
  }

  readonly unfinished = (tx: object) => this.transactionOf(tx)?.own;
  readonly isStatementError = () => false;
  readonly isNoMatch = () => false;
  readonly isDisconnect = () => false;
  readonly isUnavailable = () => false;

  /** The one whose client this is. */
  transactionOf(tx: object): FakeTransaction | undefined {
    return this.#transactions.get(tx);
  }

  open({ key }: ClientTransactionOptions, { connected }: Place): ClientTransaction<object> {
    const connection = new FakeConnection(this);
    const transaction = new FakeTransaction(this.#mock, key, connection);
    this.#transactions.set(transaction.own.proxy, transaction);
    connected(connection);
    return {
      run: async (_: Hook, body) => {
        try {
          await body(transaction.own.proxy, () => transaction.close());
        } catch (error) {
          await connection.rollback();
          throw error;
        }
        await connection.conductor?.commit(undefined);
      },
      discard: () => connection.rollback(),
    };
  }

  /** Sends what is asked beside a transaction. */
  readonly rescue = async (text: string, values: readonly unknown[]): Promise<readonly Row[]> => {
    const rows = (keys: unknown) => (JSON.parse(String(keys)) as string[]).map((key) => this.#look(key));
    if (text === SQL.LAST_ADMISSIONS) return rows(values[0]);
    if (text === SQL.LAST_TURNS) return [this.#look(String(values[0]))];
    if (text === SQL.NEXT_RUN) return [this.nextRun(values)];
    if (text === SQL.SERVER_TIME) return [{ time: Date.now() / 1_000 }];
    // Nothing is known of a transaction whose COMMIT was not answered.
    if (text === SQL.EVIDENCE) return [{ status: null, epoch: null, born: null, turns: null, attempts: null }];
    return [];
  };

  sqlState(error: unknown): string | undefined {
    // Prisma's error of a conflict, which a mock, or the script, may reject with.
    if (codeOf(error) === 'P2034') return SERIALIZATION_FAILURE;
    return error instanceof PostgresError ? error.code : undefined;
  }

  sqlDetail(error: unknown): string | undefined {
    return error instanceof PostgresError ? error.detail : undefined;
  }

  /** The row of a key, as it was committed. */
  rowOf(key: string): LockedRow {
    const row = this.#rows.get(key) ?? {};
    this.#rows.set(key, row);
    return row;
  }

  nextToken(): bigint {
    return ++this.#token;
  }

  /** When a run is due, by the clock of this process, which fake timers may move. */
  nextRun([key, interval, offset, atLeast]: readonly unknown[]): Row {
    const present = Date.now();
    const schedule = { interval: Number(interval), offset: Number(offset), atLeast: Number(atLeast) };
    const last = this.runs.get(String(key));
    // As in Postgres: one that lies ahead by more than an interval does not count.
    const counts = last !== undefined && last <= present + schedule.interval;
    const due = counts ? Math.max(nextInterval(last, schedule), last + schedule.atLeast) : present;
    return { now_ms: present, due_ms: due > present ? due : null, after_ms: nextInterval(present, schedule) };
  }

  #look(key: string): Row {
    const { token, turns = 0n } = this.rowOf(key).committed ?? {};
    return { token: token?.toString(), turns: String(turns), seen: String(turns) };
  }
}

/** When the interval ends that this moment is in; milliseconds since the Unix epoch. */
function nextInterval(at: number, { interval, offset }: Schedule): number {
  return (Math.floor((at - offset) / interval) + 1) * interval + offset;
}

/** The elements of the literal of an array. */
function elementsOf(literal: string | null | undefined): string[] | undefined {
  return literal == null
    ? undefined
    : Array.from(literal.matchAll(/"((?:[^"\\]|\\.)*)"/gs), ([, text = '']) => text.replace(/\\(.)/gs, '$1'));
}

/** A connection with one transaction. */
class FakeConnection implements Connection {
  stage: Connection['stage'] = 'opening';
  conductor: Conductor | undefined;
  answers: readonly Reply<StatementResult>[] = [];
  readonly isBehindCommit = false;
  readonly canChain = false;
  readonly isPoolWaitedFor = false;
  closedBy: unknown;
  /** Whether the answer to COMMIT is lost. */
  losesAnswer = false;
  readonly #database: FakeDatabase;
  /** The rows that it has locked, and what COMMIT makes of them. */
  readonly #written = new Map<LockedRow, KeyRow>();
  readonly #runs: Array<readonly [key: string, at: number]> = [];
  readonly #ended = new Reply<void>();
  readonly isOver = false;

  constructor(database: FakeDatabase) {
    this.#database = database;
  }

  begin({ statements }: Beginning): readonly Reply<StatementResult>[] {
    this.answers = statements.map((statement) => {
      const reply = new Reply<StatementResult>();
      const answered = (text: string) => reply.resolve({ rows: [[text]], tag: 'SELECT 1' });
      if (statement.text !== SQL.ADMIT && statement.text !== SQL.ADMIT_KEYS) answered('');
      else this.#admit(statement).then(answered, (error: unknown) => reply.reject(error));
      return reply;
    });
    return this.answers;
  }

  readonly query = async (text: string, values: readonly unknown[]): Promise<readonly Row[]> => {
    if (text !== SQL.MARK_RUN) return [];
    const run = this.#database.nextRun(values);
    if (run['due_ms'] === null) this.#runs.push([String(values[0]), Number(run['now_ms'])]);
    return [run];
  };

  commit(): Committing {
    const answer = new Reply<StatementResult>();
    if (this.losesAnswer) answer.reject(new Error('The script of fakeLocks says so.'));
    else {
      for (const [row, written] of this.#written) row.committed = written;
      for (const [key, at] of this.#runs) this.#database.runs.set(key, at);
      answer.resolve({ rows: [], tag: 'COMMIT' });
    }
    this.#end();
    return { answer, next: undefined };
  }

  readonly rollback = async () => this.#end();
  readonly abandon = () => this.#end();
  readonly closeIfSilent = () => this.#end();
  readonly destroy = () => this.#end();

  /** As `fenced_lock.admit` does. Resolves to its answer. */
  async #admit({ text, values }: Statement): Promise<string> {
    const [key, holder, , , , waitTime, , ...registered] = values;
    const several = text === SQL.ADMIT_KEYS;
    const keys = several ? (elementsOf(key) ?? []) : [String(key)];
    const holders = several ? (elementsOf(holder) ?? []) : [String(holder)];
    const [tokens, successors = holders] = registered.slice(0, 2).map(elementsOf);
    const admitted: bigint[] = [];
    let turns = 0n;
    for (const [at, name] of keys.entries()) {
      const row = this.#database.rowOf(name);
      await this.#untilFree(row, name, tokens === undefined ? undefined : Number(waitTime));
      const { committed } = row;
      const token = tokens?.[at] === undefined ? this.#database.nextToken() : BigInt(tokens[at]);
      if (tokens !== undefined && (committed?.token !== token || committed.holder !== holders[at])) {
        const code = committed === undefined ? 'FL005' : 'FL003';
        throw new PostgresError(code, 'another holder has been admitted', name);
      }
      turns = (committed?.turns ?? 0n) + 1n;
      row.writer = this;
      this.#written.set(row, { token, holder: String(successors[at]), turns });
      admitted.push(token);
    }
    return [turns, '1', '1', 'fake', ...admitted, '-'].join(' ');
  }

  /**
   * Waits for the row, as a transaction of a handle does behind another one. Whoever draws a new token has the lease, or takes
   * the key by force, so the one that has the row has lost its lease: its session is ended.
   */
  async #untilFree(row: LockedRow, key: string, waitTime: number | undefined): Promise<void> {
    while (waitTime === undefined && row.writer) {
      row.writer.closed(new PostgresError(ADMIN_SHUTDOWN, 'terminating connection due to administrator command'));
    }
    const deadline = new Deadline(waitTime ?? 0);
    while (row.writer && !this.#ended.isSettled) {
      const ended = Promise.race([row.writer.#ended.promise, this.#ended.promise]);
      if ((await within(ended, deadline.remaining)) === OVERDUE) break;
    }
    if (row.writer || this.#ended.isSettled) throw new PostgresError(LOCK_NOT_AVAILABLE, `the row of ${key} is locked`);
  }

  /** The server has ended the session. */
  closed(error: unknown): void {
    this.closedBy = error;
    this.#end();
    this.conductor?.closed(error);
  }

  /** Frees the rows, for those that wait. */
  #end(): void {
    for (const row of this.#written.keys()) row.writer = undefined;
    this.#written.clear();
    this.#ended.resolve();
  }
}
