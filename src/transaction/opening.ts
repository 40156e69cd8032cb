import { Reply } from '../base/reply.js';
import {
  type Beginning,
  type ClientTransaction,
  type ClientTransactionOptions,
  type Connection,
  type Database,
  NotRun,
  type Query,
  type Statement,
  type StatementResult,
} from '../database/database.js';
import {
  type Admission,
  type AdmissionInput,
  type AdmissionRequest,
  admissionStatement,
  readAdmission,
  requestOf,
} from './admission.js';

export interface OpeningOptions extends ClientTransactionOptions {
  /** Makes the admission request when there is a connection: its wait time is what is left then. */
  readonly request: () => AdmissionRequest;
  /** Statements that run before the admission, in the same transaction. */
  readonly before?: readonly Statement[] | undefined;
}

/** What the transaction of a call is opened for. */
interface OpeningInput extends AdmissionInput {
  readonly database: { readonly rescue: Query };
  readonly parts: { readonly fencing: { needsHook(aside: Query): boolean } };
  readonly options: AdmissionInput['options'] & Pick<ClientTransactionOptions, 'maxWait' | 'isolationLevel'>;
  readonly before?: readonly Statement[];
  /** Default: true. */
  readonly evenIfWanted?: boolean;
}

export function openingOptions(input: OpeningInput): OpeningOptions {
  const { leases, options, evenIfWanted = true, before } = input;
  const { maxWait, isolationLevel } = options;
  const hooked = input.parts.fencing.needsHook(input.database.rescue);
  const request = () => requestOf(input);
  return { key: leases.keys[0] as string, maxWait, isolationLevel, hooked, evenIfWanted, before, request };
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
