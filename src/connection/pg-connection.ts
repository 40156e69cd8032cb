import { after } from '../base/clock.js';
import { InvalidOptionError } from '../base/errors.js';
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
import type { PgClient, PgResult } from './pg.js';
import type { PooledConnection } from './pooled-connection.js';

/** How long a connection that is given up may take to end its transaction before it is closed; milliseconds. */
export const SILENT_TIME = 2_500;

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
  answers: Answers;
  readonly facade: PgClient;
  /** `undefined` once the next transaction has begun on the connection, or the connection is back in the pool. */
  #pooled: PooledConnection | undefined;
  /** The connection, once the next transaction has begun on it. */
  #passedOn: PooledConnection | undefined;
  #closedBy: unknown;
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
    this.facade = {
      query: this.#onQuery,
      on: (event, listener) => client.on(event, listener),
      removeListener: (event, listener) => client.removeListener(event, listener),
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
  readonly #onQuery = (query: unknown): Promise<PgResult> => {
    const config = typeof query === 'string' ? { text: query } : (query as { text: string });
    const { text } = config;
    if (this.stage === 'opening' && OF_BEGIN.test(text)) return ANSWERED;
    if (this.stage !== 'working' && text === ROLLBACK) return this.rollback().then(() => NOTHING);
    const { conductor } = this;
    if (conductor === undefined) return Promise.reject(this.#pooled === undefined ? closed() : sentTooEarly());
    if (this.stage === 'ending' && text === 'COMMIT') return conductor.commit(NOTHING);
    return this.#sendWork(config as Record<string, unknown>, text, conductor.gate);
  };

  async #sendWork(config: Record<string, unknown>, text: string, gate: Passage): Promise<PgResult> {
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

  #connection(): PooledConnection {
    if (this.#pooled === undefined) throw closed();
    return this.#pooled;
  }

  /** Drops all references: Prisma keeps its last hundred transactions and what they refer to. */
  readonly #release = (): void => {
    const pooled = this.#pooled;
    this.#closedBy = pooled?.closedBy;
    this.#pooled = undefined;
    this.conductor = undefined;
    this.#passedOn = undefined;
    this.#commitBefore = undefined;
    this.answers = [];
    pooled?.returnToPool();
  };
}

function closed(): NotRun {
  return new NotRun('the connection of the lock has been closed');
}

/** The admission must be the first statement. */
function sentTooEarly(): InvalidOptionError {
  return new InvalidOptionError(
    '$transaction',
    'of an extension of this client sends a statement before it calls its function. Under a lock the first statement is the ' +
      'admission. Send the statement in the function of the lock, or take locks on a client without that extension.',
  );
}

function statementsOf({ isolationLevel, statements }: Beginning): Statement[] {
  const level = isolationLevel === undefined ? '' : ` ISOLATION LEVEL ${LEVELS[isolationLevel]}`;
  const text = `BEGIN${level}`;
  return [{ text, name: `fenced_lock ${text}`, values: [] }, ...statements];
}
