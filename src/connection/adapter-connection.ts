import { after } from '../base/clock.js';
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
  readonly isOver = false;
  readonly canChain = false;
  readonly isPoolWaitedFor = false;
  readonly closedBy = undefined;
  answers: readonly Reply<StatementResult>[] = [];
  readonly facade: AdapterTransaction;
  readonly #transaction: AdapterTransaction;
  readonly #isLoss: (error: unknown) => boolean;
  #failed = false;
  /** Whether COMMIT or ROLLBACK was answered, so that the connection is outside of a transaction. */
  #hasEnded = false;
  #rollingBack: Promise<void> | undefined;
  /** Whether it was given back. Somebody else may have the connection. */
  #isGivenBack = false;

  /** @param isLoss whether an error says that the connection is gone. */
  constructor(transaction: AdapterTransaction, isLoss: (error: unknown) => boolean) {
    this.#transaction = transaction;
    this.#isLoss = isLoss;
    const pass = <T>(query: AdapterQuery, send: (query: AdapterQuery) => Promise<T>) => this.#onQuery(query, send);
    this.facade = Object.assign(Object.create(transaction) as AdapterTransaction, {
      queryRaw: (query: AdapterQuery) => pass(query, (sent) => transaction.queryRaw(sent)),
      executeRaw: (query: AdapterQuery) => pass(query, (sent) => transaction.executeRaw(sent)),
      commit: () => this.#onCommit(),
      rollback: () => this.#giveBack('rollback'),
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
    this.#throwIfGivenBack();
    return rowsOf(await this.#transaction.queryRaw(queryOf(text, values)));
  };

  commit(): Committing {
    return { answer: replyOf(this.#commit().then((tag) => ({ rows: [], tag }))), next: undefined };
  }

  async rollback(): Promise<void> {
    if (!this.#isGivenBack && !this.#hasEnded) await this.#rollback();
  }

  /** The database client always ends a transaction of an adapter itself. */
  abandon(): void {}

  /** Closes it also if the server has answered: one more ROLLBACK is harmless, and nothing is sent behind it. */
  closeIfSilent(): void {
    after(SILENT_TIME, () => this.destroy()).unref();
  }

  destroy(): void {
    void this.#giveBack('rollback').catch(() => {});
  }

  async #onQuery<T>(query: AdapterQuery, send: (query: AdapterQuery) => Promise<T>): Promise<T> {
    const { sql, args } = query;
    const { conductor } = this;
    if (this.stage !== 'working' && sql === 'ROLLBACK') {
      await this.rollback();
      return 0 as T;
    }
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
    this.#throwIfGivenBack();
    conductor.gate.enter(sql);
    try {
      const answer = await send(query);
      conductor.gate.leave();
      return answer;
    } catch (error) {
      this.#failed = true;
      throw conductor.gate.failed(error);
    }
  }

  /**
   * With a phantom query, Prisma sends no COMMIT and leaves it to the adapter. Otherwise this only returns the
   * connection.
   */
  async #onCommit(): Promise<void> {
    if (!this.#transaction.options.usePhantomQuery) return await this.#giveBack('commit');
    try {
      await this.conductor?.commit(undefined);
    } catch (error) {
      // Prisma takes the transaction for ended, and calls nothing more.
      await this.#giveBack('rollback').catch(() => {});
      throw error;
    }
  }

  /**
   * Without a phantom query, the adapter sends nothing here and only returns the connection. Its next user would commit a
   * transaction that is still open, so ROLLBACK comes first, behind what is in flight, unless the transaction has ended.
   */
  async #giveBack(verb: 'commit' | 'rollback'): Promise<void> {
    if (this.#isGivenBack) return;
    this.#isGivenBack = true;
    try {
      if (!this.#hasEnded) await this.#rollback();
    } catch (error) {
      // Nobody can use a connection that is gone. After another error its state is unknown, so it does not go back to the pool.
      if (!this.#isLoss(error)) throw error;
    }
    await this.#transaction[verb]();
  }

  /** Once at a time: a driver may refuse a second one, and the connection would be kept for that. */
  #rollback(): Promise<void> {
    this.#rollingBack ??= this.#sendRollback().finally(() => {
      this.#rollingBack = undefined;
    });
    return this.#rollingBack;
  }

  async #sendRollback(): Promise<void> {
    // With a phantom query, the adapter sends it itself when the connection is given back.
    if (this.#transaction.options.usePhantomQuery) return;
    await this.#transaction.executeRaw(queryOf('ROLLBACK', []));
    this.#hasEnded = true;
  }

  #throwIfGivenBack(): void {
    if (this.#isGivenBack) throw new NotRun('the connection of the lock has been given back');
  }

  /**
   * Postgres answers COMMIT of a failed transaction with ROLLBACK, and the adapter reports success. So check the
   * transaction first.
   */
  async #commit(): Promise<string> {
    this.#throwIfGivenBack();
    if (this.#failed && !(await this.query(OWN_XID, []).then(Boolean, () => false))) {
      await this.rollback();
      return 'ROLLBACK';
    }
    // It may have been meanwhile.
    this.#throwIfGivenBack();
    if (this.#transaction.options.usePhantomQuery) await this.#giveBack('commit');
    else await this.#transaction.executeRaw(queryOf('COMMIT', []));
    this.#hasEnded = true;
    return 'COMMIT';
  }

  async #text({ text, values }: Statement): Promise<StatementResult> {
    this.#throwIfGivenBack();
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

/** A statement as driver adapters take it. */
export function queryOf(sql: string, args: readonly unknown[]): AdapterQuery {
  return { sql, args: [...args], argTypes: args.map(() => ({ scalarType: 'unknown', arity: 'scalar' })) };
}

/** The rows of an adapter's answer, as objects. */
export function rowsOf({ columnNames, rows }: ResultSet): Row[] {
  return rows.map((row) => Object.fromEntries(columnNames.map((name, index) => [name, row[index]])));
}
