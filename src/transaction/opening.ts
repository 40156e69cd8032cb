import { Reply } from '../base/reply.js';
import {
  type ClientTransaction,
  type ClientTransactionOptions,
  type Connection,
  type Database,
  NotRun,
  type StatementResult,
} from '../database/database.js';
import type { Fencing } from '../fencing/fencing.js';
import {
  type Admission,
  type AdmissionInput,
  type AdmissionRequest,
  admissionRequest,
  readAdmission,
} from './admission.js';

/** What a transaction is opened for. */
export interface OpeningInput<Tx> extends AdmissionInput {
  readonly database: Database<Tx>;
  readonly parts: { readonly fencing: Pick<Fencing, 'needsHook'> };
  readonly options: AdmissionInput['options'] & Pick<ClientTransactionOptions, 'maxWait'>;
  /** Default: true. */
  readonly evenIfWanted?: boolean;
}

/** BEGIN and the admission of a turn, which were sent in one flight with the COMMIT of the turn before it. */
export interface Chained {
  readonly request: AdmissionRequest;
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

  constructor(input: OpeningInput<Tx>, chained?: Chained) {
    const { database, leases, options, parts, evenIfWanted = true } = input;
    const { maxWait, isolationLevel } = options;
    const over = chained?.connection;
    this.#chained = chained;
    this.hooked = parts.fencing.needsHook(database.rescue);
    const connected = (connection: Connection) => this.#onConnection(connection, input);
    try {
      const { hooked } = this;
      const client = { key: leases.keys[0] as string, maxWait, isolationLevel, hooked, evenIfWanted };
      this.transaction = database.open(client, { over, connected });
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

  #onConnection(connection: Connection, input: AdmissionInput): void {
    this.connection = connection;
    if (this.#discarded) {
      this.admission.reject(new NotRun('it is not needed any more'));
      connection.closeIfSilent();
      return;
    }
    const request = this.#chained?.request ?? admissionRequest(input);
    const answers = this.#chained ? connection.answers : connection.begin(request.beginning);
    const at = answers.length - 1;
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

/** On a connection of the pool, NotRun only wraps the error that kept BEGIN from running: show that error. */
function unwrapNotRun(error: unknown): unknown {
  return error instanceof NotRun && error.cause !== undefined ? error.cause : error;
}
