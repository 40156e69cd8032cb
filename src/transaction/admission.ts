import { createHash, randomUUID } from 'node:crypto';
import { LONGEST_TIME } from '../base/clock.js';
import { Reply } from '../base/reply.js';
import {
  type Beginning,
  type ClientTransaction,
  type ClientTransactionOptions,
  type Connection,
  type Database,
  NotRun,
  type Statement,
  type StatementResult,
  type TextRow,
} from '../database/database.js';
import { ADMIT, ADMIT_KEYS } from '../database/sql.js';

/**
 * A hash of the statement's text: behind a pooler, another version of this package may have prepared its own admission
 * on the same server connection, under another text.
 */
const ADMIT_NAME = nameOf(ADMIT);
const ADMIT_KEYS_NAME = nameOf(ADMIT_KEYS);
/**
 * `statement_timeout` exceeds the work's timeout by this, so that the client aborts first, with an error that says why;
 * milliseconds.
 */
const BACKSTOP = 500;

/** What Postgres answered to one attempt at a transaction. */
export interface Admission {
  /** The last of the keys. The outcome of a lost COMMIT is read from its row. */
  readonly key: string;
  readonly attempt: string;
  /** One token for each key. The last one was drawn last, so it is the highest. Rows are fenced with it. */
  readonly tokens: readonly bigint[];
  readonly token: bigint;
  /** The number of this admission in the key's row, counted since the row was created. */
  readonly turn: bigint;
  readonly xid: string;
  readonly pid: number;
  /** The crash epoch; `undefined` if no epoch was started since the last crash. */
  readonly epoch: string | undefined;
}

export interface AdmissionRequest {
  readonly keys: readonly string[];
  /** One holder id for each key. */
  readonly holders: readonly string[];
  /** Postgres ends the transaction if the client is silent for this time; milliseconds. */
  readonly leaseTime: number;
  /** Postgres cancels a statement of the work that runs longer; milliseconds. */
  readonly workTime: number;
  /** How long the admission waits for the locks on the keys' rows; milliseconds. */
  readonly waitTime: number;
  /** The registered tokens of a handle, one for each key. Without them, new tokens are drawn. */
  readonly tokens?: readonly bigint[] | undefined;
  /** With `tokens`: the holder ids that replace the present ones in the keys' rows. */
  readonly successors?: readonly string[] | undefined;
  /**
   * The id of the lease's waiting room, a signed 32-bit number. A later holder from the same waiting room may end this
   * transaction.
   */
  readonly room?: number | undefined;
  /** Whether the commit must survive a crash of Postgres, because other systems will see the token. */
  readonly durable?: boolean | undefined;
}

export interface OpeningOptions extends ClientTransactionOptions {
  /** Makes the admission request when there is a connection: its wait time is what is left then. */
  readonly request: () => AdmissionRequest;
  /** Statements that run before the admission, in the same transaction. */
  readonly before?: readonly Statement[];
}

/** BEGIN and the admission of a turn, which were sent in one flight with the COMMIT of the turn before it. */
export interface Chained {
  readonly request: BuiltRequest;
  readonly connection: Connection;
}

/**
 * The opening of a transaction: takes a connection from the pool and sends BEGIN and the admission on it in one flight. Or
 * goes on on the connection of the previous turn, where both were sent with its COMMIT.
 */
export class Opening<Tx> {
  /** Resolves when Postgres admits the transaction. Rejects when Postgres refuses it, or when it was not sent. */
  readonly admission = new Reply<Admission>();
  /** The replies to the statements before the admission. */
  before: readonly Reply<StatementResult>[] = [];
  connection: Connection | undefined;
  /** Whether its writes pass the hook. */
  readonly hooked: boolean;
  /** To be run, unless the opening is discarded. */
  readonly transaction: ClientTransaction<Tx>;
  readonly #chained: Chained | undefined;
  #discarded = false;

  constructor(database: Database<Tx>, options: OpeningOptions, chained?: Chained) {
    const over = chained?.connection;
    this.#chained = chained;
    this.hooked = options.hooked;
    const connected = (connection: Connection) => this.#onConnection(connection, options);
    try {
      this.transaction = database.open(options, { over, connected });
    } catch (error) {
      over?.abandon();
      throw error;
    }
  }

  /** Called when the database client has ended its transaction. */
  onTransactionEnded(): void {
    if (this.connection !== undefined) return;
    // It may have given up the wait for a connection that comes later.
    this.#discarded = true;
    // BEGIN was sent with the previous turn's COMMIT, so the connection still has to be cleaned up.
    this.#chained?.connection.abandon();
  }

  /** Called instead of `run`: rolls back and returns the connection to the pool. Resolves when that is done. */
  async discard(): Promise<void> {
    this.abandon();
    await this.transaction.discard().catch(() => {});
    this.onTransactionEnded();
  }

  /**
   * Called when the caller waits no more, while the database client still ends its transaction. If there is no
   * connection yet, nothing is sent on it later.
   */
  abandon(): void {
    this.#discarded = true;
    this.connection?.closeIfSilent();
  }

  #onConnection(connection: Connection, options: OpeningOptions): void {
    this.connection = connection;
    if (this.#discarded) {
      this.admission.reject(new NotRun('it is not needed any more'));
      connection.closeIfSilent();
      return;
    }
    const request = this.#chained?.request ?? buildRequest(options);
    const answers = this.#chained ? connection.answers : connection.begin(request.beginning);
    const at = options.before?.length ?? 0;
    this.before = answers.slice(0, at);
    answers[at]?.listen(
      ({ rows }) => {
        try {
          this.admission.resolve(readAdmission(request, rows));
        } catch (error) {
          this.admission.reject(error);
        }
      },
      (error) => this.admission.reject(this.#chained ? error : unwrapNotRun(error)),
    );
  }
}

/** An admission request as it is sent: with BEGIN, and under the id of its attempt. */
export interface BuiltRequest {
  readonly beginning: Beginning;
  readonly attempt: string;
  readonly keys: readonly string[];
}

export function buildRequest({ request, isolationLevel, before = [] }: OpeningOptions): BuiltRequest {
  const admission = request();
  const { statement, attempt } = admissionStatement(admission);
  return { beginning: { isolationLevel, statements: [...before, statement] }, attempt, keys: admission.keys };
}

/** On a connection of the pool, NotRun only wraps the error that kept BEGIN from running: show that error. */
function unwrapNotRun(error: unknown): unknown {
  return error instanceof NotRun && error.cause !== undefined ? error.cause : error;
}

interface AdmissionInput {
  readonly leases: Pick<AdmissionRequest, 'keys' | 'holders' | 'leaseTime'> & { readonly shared: boolean };
  /** The timeout of the work; milliseconds. */
  readonly timeout: number;
  readonly registered?: Pick<AdmissionRequest, 'tokens' | 'successors' | 'durable'> | undefined;
  readonly room: number | undefined;
}

/** The admission request of a call. */
export function requestOf({ leases, timeout, registered, room }: AdmissionInput, waitTime: number): AdmissionRequest {
  const { keys, holders, leaseTime, shared } = leases;
  const workTime = Math.min(timeout + BACKSTOP, LONGEST_TIME);
  // A caller without a lease (Redis is down) registers no waiting room, so that no holder ends its transaction as that
  // of a former holder.
  return { keys, holders, leaseTime, workTime, waitTime, room: shared ? undefined : room, ...registered };
}

/** Builds the admission statement, with a new attempt id in it. */
function admissionStatement(request: AdmissionRequest): { readonly statement: Statement; readonly attempt: string } {
  const { keys, holders, leaseTime, workTime, waitTime, room, tokens, successors, durable } = request;
  const attempt = randomUUID();
  const isUsual = keys.length === 1 && tokens === undefined && !durable;
  const values = [
    isUsual ? (keys[0] as string) : arrayOf(keys),
    isUsual ? (holders[0] as string) : arrayOf(holders),
    attempt,
    String(Math.ceil(leaseTime)),
    String(Math.ceil(workTime)),
    String(Math.ceil(waitTime)),
    room === undefined ? null : String(room),
  ];
  if (isUsual) return { statement: { text: ADMIT, name: ADMIT_NAME, values }, attempt };
  values.push(
    tokens === undefined ? null : arrayOf(tokens.map(String)),
    successors === undefined ? null : arrayOf(successors),
    durable === undefined ? null : String(durable),
  );
  return { statement: { text: ADMIT_KEYS, name: ADMIT_KEYS_NAME, values }, attempt };
}

/** Formats a Postgres array literal. https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO */
function arrayOf(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replace(/["\\]/g, '\\$&')}"`).join()}}`;
}

function readAdmission({ keys, attempt }: Omit<BuiltRequest, 'beginning'>, rows: readonly TextRow[]): Admission {
  const words = (rows[0]?.[0] ?? '').split(' ');
  const [turn = '', xid = '', pid, epoch] = words;
  const tokens = words.slice(4, 4 + keys.length).map(BigInt);
  return {
    key: keys.at(-1) as string,
    attempt,
    tokens,
    token: tokens.at(-1) as bigint,
    turn: BigInt(turn),
    xid,
    pid: Number(pid),
    epoch: epoch === '-' ? undefined : epoch,
  };
}

function nameOf(text: string): string {
  return `fenced_lock ${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}
