import { AnswerTimer } from '../base/clock.js';
import { InvalidOptionError } from '../base/errors.js';
import { Reply } from '../base/reply.js';
import type {
  Beginning,
  Committing,
  Conductor,
  Connection,
  Row,
  Statement,
  StatementResult,
} from '../database/database.js';
import { NotRun } from '../database/database.js';
import { OWN_XID } from '../database/sql.js';
import { SILENT_TIME } from './pg-connection.js';

interface AdapterQuery {
  sql: string;
  args: unknown[];
  argTypes: unknown[];
}

interface ResultSet {
  columnNames: string[];
  rows: unknown[][];
}

/** The transaction object of a Prisma driver adapter. */
export interface AdapterTransaction {
  readonly options: { readonly usePhantomQuery: boolean };
  queryRaw(query: AdapterQuery): Promise<ResultSet>;
  executeRaw(query: AdapterQuery): Promise<number>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/**
 * One transaction of a driver adapter without a pool of pg, such as one over HTTP. The adapter has sent BEGIN itself.
 * Each statement is a round trip, and neither the command tag nor the state of the transaction is known.
 */
export class AdapterConnection implements Connection {
  stage: Connection['stage'] = 'opening';
  conductor: Conductor | undefined;
  readonly isBehindCommit = false;
  readonly lostBackends: ReadonlyMap<number, number> = new Map();
  readonly isOver = false;
  readonly canChain = false;
  readonly closedBy = undefined;
  answers: readonly Reply<StatementResult>[] = [];
  readonly facade: AdapterTransaction;
  readonly #transaction: AdapterTransaction;
  #failed = false;
  #over = false;

  constructor(transaction: AdapterTransaction) {
    this.#transaction = transaction;
    const pass = <T>(query: AdapterQuery, send: (query: AdapterQuery) => Promise<T>) => this.#onQuery(query, send);
    this.facade = Object.assign(Object.create(transaction) as AdapterTransaction, {
      queryRaw: (query: AdapterQuery) => pass(query, (sent) => transaction.queryRaw(sent)),
      executeRaw: (query: AdapterQuery) => pass(query, (sent) => transaction.executeRaw(sent)),
      commit: () => this.#onCommit(),
      rollback: () => this.#onRollback(),
    });
  }

  begin({ statements }: Beginning): readonly Reply<StatementResult>[] {
    let before: Promise<unknown> = Promise.resolve();
    this.answers = statements.map((statement) => {
      const answer = before.then(() => this.#text(statement));
      before = answer;
      return replyOf(answer);
    });
    return this.answers;
  }

  readonly query = async (text: string, values: readonly unknown[]): Promise<readonly Row[]> => {
    const { columnNames, rows } = await this.#transaction.queryRaw(queryOf(text, values));
    return rows.map((row) => Object.fromEntries(columnNames.map((name, index) => [name, row[index]])));
  };

  commit(): Committing {
    return { answer: replyOf(this.#commit().then((tag) => ({ rows: [], tag }))), next: undefined };
  }

  async rollback(): Promise<void> {
    if (!this.#transaction.options.usePhantomQuery) await this.#transaction.executeRaw(queryOf('ROLLBACK', []));
  }

  /** The database client always ends a transaction of an adapter itself. */
  abandon(): void {}

  closeIfSilent(): void {
    const isSilent = () => this.answers.at(-1)?.isSettled === false;
    new AnswerTimer(SILENT_TIME, () => isSilent() && this.destroy()).unref();
  }

  destroy(): void {
    void this.#onRollback().catch(() => {});
  }

  async #onQuery<T>(query: AdapterQuery, send: (query: AdapterQuery) => Promise<T>): Promise<T> {
    const { sql, args } = query;
    const { conductor } = this;
    // Once the connection was given back, somebody else may have it.
    if (this.stage !== 'working' && sql === 'ROLLBACK') return this.#over ? (0 as T) : await send(query);
    if (conductor === undefined) throw new NotRun('the transaction of the lock has not begun');
    if (this.stage === 'ending' && sql === 'COMMIT') {
      return await conductor.commit(0 as T);
    }
    // A driver may send such a text by the simple protocol, and a statement after a COMMIT in it would run outside the
    // transaction.
    if (args.length === 0 && /;\s*\S/.test(sql)) {
      throw new InvalidOptionError(
        'sql',
        'under a lock must be one statement with this driver adapter: send each by itself, and bind a text that has a semicolon.',
      );
    }
    conductor.gate.enter(sql);
    try {
      const answer = await send(query);
      conductor.gate.leave();
      return answer;
    } catch (error) {
      this.#failed = true;
      throw conductor.failed(error);
    }
  }

  /**
   * With a phantom query, Prisma sends no COMMIT and leaves it to the adapter. Otherwise this only returns the
   * connection.
   */
  async #onCommit(): Promise<void> {
    if (this.#transaction.options.usePhantomQuery) await this.conductor?.commit(undefined);
    else await this.#onRollback('commit');
  }

  async #onRollback(verb: 'commit' | 'rollback' = 'rollback'): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    await this.#transaction[verb]();
  }

  /**
   * Postgres answers COMMIT of a failed transaction with ROLLBACK, and the adapter reports success. So check the
   * transaction first.
   */
  async #commit(): Promise<string> {
    if (this.#failed && !(await this.query(OWN_XID, []).then(Boolean, () => false))) {
      await this.rollback();
      return 'ROLLBACK';
    }
    if (this.#transaction.options.usePhantomQuery) await this.#onRollback('commit');
    else await this.#transaction.executeRaw(queryOf('COMMIT', []));
    return 'COMMIT';
  }

  async #text({ text, values }: Statement): Promise<StatementResult> {
    const { rows } = await this.#transaction.queryRaw(queryOf(text, values));
    return { rows: rows.map((row) => row.map((value) => (value === null ? null : String(value)))), tag: '' };
  }
}

function replyOf<T>(promise: Promise<T>): Reply<T> {
  const reply = new Reply<T>();
  promise.then(
    (value) => reply.resolve(value),
    (error: unknown) => reply.reject(error),
  );
  return reply;
}

function queryOf(sql: string, args: readonly unknown[]): AdapterQuery {
  return { sql, args: [...args], argTypes: args.map(() => ({ scalarType: 'unknown', arity: 'scalar' })) };
}
