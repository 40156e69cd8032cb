import type { Reply } from '../base/reply.js';
import {
  type Beginning,
  type Committing,
  type Conductor,
  type Connection,
  NotRun,
  type Row,
  type Statement,
  type StatementResult,
} from '../database/database.js';
import type { PgClient, PgResult, PooledConnection } from './pooled-connection.js';

const LEVELS: Readonly<Record<string, string>> = {
  ReadUncommitted: 'READ UNCOMMITTED',
  ReadCommitted: 'READ COMMITTED',
  RepeatableRead: 'REPEATABLE READ',
  Serializable: 'SERIALIZABLE',
};
const COMMIT: Statement = { text: 'COMMIT', values: [] };
const ROLLBACK = 'ROLLBACK';
const OF_BEGIN = /^(BEGIN$|SET TRANSACTION ISOLATION LEVEL )/;
/** The answer to a statement that is not sent. */
const NOTHING: PgResult = { command: '', rows: [] };
const ANSWERED = Promise.resolve(NOTHING);

type Answers = readonly Reply<StatementResult>[];

/** One transaction on a connection of pg. The database client uses its `facade`. */
export class PgConnection implements Connection {
  stage: Connection['stage'] = 'opening';
  conductor: Conductor | undefined;
  readonly isBehind: boolean;
  readonly facade: PgClient;
  /** `undefined` once the next transaction has begun on the connection, or the connection is back in the pool. */
  #pooled: PooledConnection | undefined;
  /** The connection, once the next transaction has begun on it. */
  #passedOn: PooledConnection | undefined;
  #answers: Answers = [];

  /**
   * @param begun the replies to BEGIN and the admission, if they were sent with the COMMIT of the previous transaction.
   */
  constructor(line: PooledConnection, begun: Answers = []) {
    this.#pooled = line;
    this.#answers = begun;
    this.isBehind = begun.length > 0;
    const { client } = line;
    this.facade = {
      query: (query) => this.#onQuery(query as string | { text: string }),
      on: (event, listener) => client.on(event, listener),
      removeListener: (event, listener) => client.removeListener(event, listener),
      release: () => this.#release(),
    };
  }

  /** False if another caller waits for a connection of the pool: callers of one key must not starve the others. */
  get canChain(): boolean {
    return this.#pooled !== undefined && !this.#pooled.isWaitedFor;
  }

  get isOver(): boolean {
    return this.#pooled?.settledStatus === 'I';
  }

  get answers(): Answers {
    return this.#answers;
  }

  begin(beginning: Beginning): Answers {
    const [, ...answers] = this.#connection().sendFlight(beginningOf(beginning));
    this.#answers = answers;
    return answers;
  }

  readonly query = async (text: string, values: readonly unknown[]): Promise<readonly Row[]> =>
    (await this.#connection().send({ text, values: [...values] })).rows;

  commit(next: Beginning | undefined): Committing {
    const line = this.#connection();
    const statements = next === undefined ? [COMMIT] : [COMMIT, ...beginningOf(next)];
    const [answer, , ...begun] = line.sendFlight(statements) as [Reply<StatementResult>, ...Reply<StatementResult>[]];
    if (next === undefined) return { answer, next };
    this.#pooled = undefined;
    this.#passedOn = line;
    return { answer, next: new PgConnection(line, begun) };
  }

  async rollback(): Promise<void> {
    // Nothing to roll back if no BEGIN was sent.
    if (this.#pooled === undefined || this.#answers.length === 0) return;
    await this.#pooled.rollback();
  }

  abandon(): void {
    const back = () => this.#release();
    this.rollback().then(back, back);
  }

  destroy(): void {
    // If the answer to COMMIT is lost, the answers after it are lost, too.
    const line = this.#pooled ?? this.#passedOn;
    this.#pooled = undefined;
    this.#passedOn = undefined;
    line?.destroy();
  }

  /**
   * Called for each statement of the database client. BEGIN was sent with the admission, and the conductor decides
   * about COMMIT.
   */
  #onQuery(query: string | { text: string }): Promise<PgResult> {
    const config = typeof query === 'string' ? { text: query } : query;
    const { text } = config;
    if (this.stage === 'opening' && OF_BEGIN.test(text)) return ANSWERED;
    if (this.stage !== 'working' && text === ROLLBACK) return this.rollback().then(() => NOTHING);
    const { conductor } = this;
    if (conductor === undefined) return Promise.reject(new NotRun('the transaction of the lock has not begun'));
    if (this.stage === 'ending' && text === 'COMMIT') return conductor.commit(NOTHING);
    return this.#sendWork(config as Record<string, unknown>, text, conductor);
  }

  #sendWork(config: Record<string, unknown>, text: string, conductor: Conductor): Promise<PgResult> {
    let line: PooledConnection;
    try {
      line = this.#connection();
      conductor.enter(text);
    } catch (error) {
      return Promise.reject(error);
    }
    return line.send(config).then(
      (result) => {
        // `I` means outside a transaction. Only the work's own SQL can have ended it.
        if (line.status === 'I') conductor.ended(result.command);
        conductor.left();
        return result;
      },
      (error: unknown) => {
        throw conductor.failed(error);
      },
    );
  }

  #connection(): PooledConnection {
    if (this.#pooled === undefined) throw new NotRun('the connection of the lock has been closed');
    return this.#pooled;
  }

  /** Drops all references: Prisma keeps its last hundred transactions and what they refer to. */
  #release(): void {
    const line = this.#pooled;
    this.#pooled = undefined;
    this.conductor = undefined;
    this.#passedOn = undefined;
    this.#answers = [];
    line?.returnToPool();
  }
}

function beginningOf({ isolationLevel, statements }: Beginning): Statement[] {
  const level = isolationLevel === undefined ? '' : ` ISOLATION LEVEL ${LEVELS[isolationLevel]}`;
  return [{ text: `BEGIN${level}`, values: [] }, ...statements];
}
