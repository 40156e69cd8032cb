import { after } from '../base/clock.js';
import { InvalidOptionError, lateOperation } from '../base/errors.js';
import type { Reply } from '../base/reply.js';
import {
  type Beginning,
  type Committing,
  type Conductor,
  type Connection,
  NotRun,
  type Passage,
  type Row,
  type Statement,
  type StatementResult,
} from '../database/database.js';
import { isSubmittable, type PgClient, type PgResult, type Submittable } from './pg.js';
import type { PooledConnection } from './pooled-connection.js';

/** How long a connection that is given up may take to end its transaction before it is closed; milliseconds. */
export const SILENT_TIME = 2_500;

/** The isolation levels in SQL, by their names in the options. */
export const LEVELS: Readonly<Record<string, string>> = {
  ReadUncommitted: 'READ UNCOMMITTED',
  ReadCommitted: 'READ COMMITTED',
  RepeatableRead: 'REPEATABLE READ',
  Serializable: 'SERIALIZABLE',
};
const COMMIT: Statement = { text: 'COMMIT', values: [] };
/** As the database clients write them: Prisma in capitals, Kysely and Drizzle in small letters. */
const OF_BEGIN = /^(?:begin\b|start transaction\b|set transaction isolation level )[^;]*$/i;
const OF_COMMIT = /^commit$/i;
const OF_ROLLBACK = /^rollback$/i;
/** The answers to statements that are not sent. */
const NOTHING: PgResult = { command: '', rows: [] };
const COMMITTED: PgResult = { command: 'COMMIT', rowCount: null, rows: [], fields: [] };
const ANSWERED = Promise.resolve(NOTHING);

type Answers = readonly Reply<StatementResult>[];

/** One transaction on a connection of pg. The database client uses its `facade`. */
export class PgConnection implements Connection {
  stage: Connection['stage'] = 'opening';
  conductor: Conductor | undefined;
  answers: Answers;
  readonly facade: PgClient;
  /** `undefined` once the next transaction has begun on the connection, or the connection is back in the pool. */
  #pooled: PooledConnection | undefined;
  /** The connection, once the next transaction has begun on it. */
  #passedOn: PooledConnection | undefined;
  #closedBy: unknown;
  /** The query objects of the work that have not ended. */
  readonly #cursors = new Set<Submittable>();
  /** The key of the lock, once its transaction has ended and the connection was given back. */
  #key: string | undefined;
  /** The reply to the COMMIT of the previous transaction, if BEGIN was sent with it. */
  #commitBefore: Reply<StatementResult> | undefined;

  /**
   * @param sentBefore the replies to the COMMIT of the previous transaction, and to BEGIN and the admission of this one,
   *   if they were sent in one flight.
   */
  constructor(
    pooled: PooledConnection,
    sentBefore?: { readonly commit: Reply<StatementResult>; readonly begun: Answers },
  ) {
    this.#pooled = pooled;
    this.answers = sentBefore?.begun ?? [];
    this.#commitBefore = sentBefore?.commit;
    pooled.onClosed = (error) => this.conductor?.closed(error);
    const { client } = pooled;
    const removeListener: PgClient['removeListener'] = (event, listener) => client.removeListener(event, listener);
    this.facade = {
      query: this.#onQuery,
      on: (event, listener) => client.on(event, listener),
      removeListener,
      off: removeListener,
      processID: client.processID,
      release: this.#release,
    };
  }

  /** False if another caller waits for a connection of the pool: callers of one key must not starve the others. */
  get canChain(): boolean {
    return this.#pooled !== undefined && !this.#pooled.isWaitedFor;
  }

  get isPoolWaitedFor(): boolean {
    return this.#pooled?.isWaitedFor === true;
  }

  get isBehindCommit(): boolean {
    return this.#commitBefore?.isSettled === false;
  }

  get isOver(): boolean {
    return this.#pooled?.isOutside === true;
  }

  /** The pool of the connection; `undefined` if the transaction has no connection any more. */
  get pool(): object | undefined {
    return this.#pooled?.pool;
  }

  get closedBy(): unknown {
    return (this.#pooled ?? this.#passedOn)?.closedBy ?? this.#closedBy;
  }

  begin(beginning: Beginning): Answers {
    [, ...this.answers] = this.#connection().sendFlight(statementsOf(beginning));
    return this.answers;
  }

  readonly query = async (text: string, values: readonly unknown[]): Promise<readonly Row[]> =>
    (await this.#connection().send({ text, values: [...values] })).rows;

  commit(next: Beginning | undefined): Committing {
    const pooled = this.#connection();
    const statements = next === undefined ? [COMMIT] : [COMMIT, ...statementsOf(next)];
    const [answer, , ...begun] = pooled.sendFlight(statements) as [Reply<StatementResult>, ...Reply<StatementResult>[]];
    if (next === undefined) return { answer, next };
    this.#pooled = undefined;
    this.#passedOn = pooled;
    return { answer, next: new PgConnection(pooled, { commit: answer, begun }) };
  }

  async rollback(): Promise<void> {
    // Nothing to roll back if no BEGIN was sent.
    if (this.#pooled === undefined || this.answers.length === 0) return;
    await this.#pooled.rollback();
  }

  abandon(): void {
    this.rollback().then(this.#release, this.#release);
    this.closeIfSilent();
  }

  closeIfSilent(): void {
    const pooled = this.#pooled;
    if (pooled === undefined) return;
    after(SILENT_TIME, () => {
      if (this.#pooled !== pooled) return;
      // Behind a COMMIT the connection belongs to the previous turn, too, whose COMMIT may take longer. That turn closes
      // the connection if it gets no answer.
      if (this.isBehindCommit) this.closeIfSilent();
      else this.destroy();
    }).unref();
  }

  destroy(): void {
    // If the answer to COMMIT is lost, the answers after it are lost, too.
    const pooled = this.#pooled ?? this.#passedOn;
    this.#pooled = undefined;
    this.#passedOn = undefined;
    pooled?.destroy();
  }

  /**
   * Called for each statement of the database client. BEGIN was sent with the admission, and the conductor decides
   * about COMMIT.
   */
  readonly #onQuery = (query: unknown, values?: unknown): unknown => {
    if (isSubmittable(query)) return this.#submit(query);
    const config = configOf(query, values);
    const { text } = config;
    const { conductor, stage } = this;
    if (stage === 'opening' && OF_BEGIN.test(text)) return ANSWERED;
    if (stage !== 'working' && OF_ROLLBACK.test(text)) return this.rollback().then(() => NOTHING);
    if (conductor === undefined) return Promise.reject(this.#withoutConductor());
    if (stage === 'ending' && OF_COMMIT.test(text)) return conductor.commit(COMMITTED);
    return this.#sendWork(config, text, conductor.gate);
  };

  async #sendWork(config: WorkConfig, text: string, gate: Passage): Promise<PgResult> {
    const pooled = this.#connection();
    gate.enter(text);
    let result: PgResult;
    try {
      result = await pooled.send(config);
    } catch (error) {
      throw gate.failed(error);
    }
    // Only the work's own SQL can have ended the transaction.
    if (pooled.status === 'I') gate.ended(result.command ?? '');
    gate.leave();
    return result;
  }

  /** Sends a query object of the work, such as a cursor. It counts as in flight until the server is ready again. */
  #submit<S extends Submittable>(query: S): S {
    const { conductor } = this;
    if (conductor === undefined) throw this.#withoutConductor();
    const { gate } = conductor;
    const pooled = this.#connection();
    const { handleReadyForQuery: ready, handleError: failed } = query;
    gate.enter(query.text ?? query.cursor?.text ?? '');
    // A `Query` of pg would send several statements otherwise.
    query.queryMode = 'extended';
    this.#cursors.add(query);
    let isOver = false;
    query.handleReadyForQuery = (...given) => {
      if (!isOver) {
        isOver = true;
        this.#cursors.delete(query);
        if (pooled.status === 'I') gate.ended('');
        gate.leave();
      }
      ready.apply(query, given);
    };
    query.handleError = (error, ...given) => {
      const named = isOver ? error : gate.failed(error);
      isOver = true;
      this.#cursors.delete(query);
      failed.call(query, named, ...given);
    };
    return pooled.client.query(query) as S;
  }

  /** Called when the function of the lock has ended: a cursor that it has left open would wait for its reader. */
  closeCursors(): void {
    for (const cursor of this.#cursors) (cursor.destroy ?? cursor.close)?.call(cursor);
  }

  #withoutConductor(): Error {
    if (this.#key !== undefined) return lateOperation(this.#key);
    return this.#pooled === undefined ? closed() : sentTooEarly();
  }

  #connection(): PooledConnection {
    if (this.#pooled === undefined) throw closed();
    return this.#pooled;
  }

  /** Drops all references: Prisma keeps its last hundred transactions and what they refer to. */
  readonly #release = (): void => {
    const pooled = this.#pooled;
    this.#key = this.conductor?.key;
    this.#closedBy = pooled?.closedBy;
    this.#pooled = undefined;
    this.conductor = undefined;
    this.#passedOn = undefined;
    this.#commitBefore = undefined;
    this.answers = [];
    pooled?.returnToPool();
  };
}

/** A statement of the database client. */
type WorkConfig = Record<string, unknown> & { text: string };

/** The configuration of a statement that was given as a text, or with its values beside it. Prisma's own is not copied. */
function configOf(query: unknown, values: unknown): WorkConfig {
  if (typeof query === 'string') return values === undefined ? { text: query } : { text: query, values };
  const config = query as WorkConfig;
  return Array.isArray(values) ? { ...config, values } : config;
}

function closed(): NotRun {
  return new NotRun('the connection of the lock has been closed');
}

/** The admission must be the first statement. */
function sentTooEarly(): InvalidOptionError {
  return new InvalidOptionError(
    'transaction',
    'of the database client sends a statement before it calls its function: by an extension, or by what the client does with ' +
      'each connection. Under a lock the first statement is the admission. Send the statement in the function of the lock, or ' +
      'take locks on a client without that extension or setting.',
  );
}

function statementsOf({ isolationLevel, statements }: Beginning): Statement[] {
  const level = isolationLevel === undefined ? '' : ` ISOLATION LEVEL ${LEVELS[isolationLevel]}`;
  const text = `BEGIN${level}`;
  return [{ text, name: `fenced_lock ${text}`, values: [] }, ...statements];
}
