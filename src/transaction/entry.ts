import { Reply } from '../base/reply.js';
import {
  type Beginning,
  type BeginOptions,
  type Connection,
  type Database,
  type Hook,
  NotRun,
  type Opening,
  type Statement,
  type StatementResult,
} from '../database/database.js';
import { type Admission, type AdmissionRequest, admissionOf, readAdmission } from './admission.js';

export interface EntryOptions extends BeginOptions {
  /** The key that errors name. */
  readonly key: string;
  /** Whether writes of some models need the condition that `fencing/writes.ts` adds. */
  readonly hooked: boolean;
  /** Makes the admission request when there is a connection: its wait time is what is left then. */
  readonly request: () => AdmissionRequest;
  /** Whether to begin even if other callers wait for a connection of the pool. Default: true. */
  readonly evenIfWanted?: boolean;
  /** Statements that run before the admission, in the same transaction. */
  readonly before?: readonly Statement[];
}

/**
 * The start of a transaction: takes a connection from the pool, or uses the connection of the previous turn, and sends
 * BEGIN and the admission on it in one flight.
 */
export class Entry<Tx> {
  /** Resolves when Postgres admits the transaction. Rejects when Postgres refuses it, or when it was not sent. */
  readonly admission = new Reply<Admission>();
  /** The replies to the statements before the admission. */
  before: readonly Reply<StatementResult>[] = [];
  connection: Connection | undefined;
  readonly #opening: Opening<Tx>;
  readonly #over: Connection | undefined;
  #discarded = false;

  private constructor(
    database: Database<Tx>,
    options: EntryOptions,
    over: Connection | undefined,
    asked: AskedFor | undefined,
  ) {
    const connected = (connection: Connection): void => {
      this.connection = connection;
      if (this.#discarded) {
        this.admission.reject(new NotRun('it is not needed any more'));
        return;
      }
      const sent = asked ?? askFor(options);
      const answers = over === undefined ? connection.begin(sent.beginning) : connection.answers;
      this.before = answers.slice(0, -1);
      answers.at(-1)?.listen(
        ({ rows }) => {
          try {
            this.admission.resolve(readAdmission(sent, rows));
          } catch (error) {
            this.admission.reject(error);
          }
        },
        (error) => this.admission.reject(over === undefined ? unwrapNotRun(error) : error),
      );
    };
    this.#over = over;
    this.#opening = database.open({ ...options, evenIfWanted: options.evenIfWanted ?? true, over, connected });
  }

  /** Begins on a connection of the pool. */
  static open<Tx>(database: Database<Tx>, options: EntryOptions): Entry<Tx> {
    return new Entry(database, options, undefined, undefined);
  }

  /**
   * Continues on the connection of the previous turn, which has already sent BEGIN and the admission with its COMMIT.
   */
  static follow<Tx>(database: Database<Tx>, options: EntryOptions, over: Connection, asked: AskedFor): Entry<Tx> {
    return new Entry(database, options, over, asked);
  }

  run(hook: Hook, body: (tx: Tx, close: () => void) => Promise<void>): Promise<void> {
    return this.#opening.run(hook, body);
  }

  /** Called when the database client has ended its transaction. Without a connection, nothing was begun by it. */
  onTransactionEnded(): void {
    // BEGIN was sent with the previous turn's COMMIT, so the connection still has to be cleaned up.
    if (this.connection === undefined) this.#over?.abandon();
  }

  /** Called instead of `run`: rolls back and returns the connection to the pool. */
  discard(): void {
    this.abandon();
    this.#opening.discard();
  }

  /** If there is no connection yet, nothing is sent on it later. */
  abandon(): void {
    this.#discarded = true;
  }
}

/** A built admission request: its flight, and what reads the reply. */
export interface AskedFor {
  readonly beginning: Beginning;
  readonly attempt: string;
  readonly keys: readonly string[];
}

export function askFor({ request, isolationLevel, before = [] }: EntryOptions): AskedFor {
  const asked = request();
  const { statement, attempt } = admissionOf(asked);
  return { beginning: { isolationLevel, statements: [...before, statement] }, attempt, keys: asked.keys };
}

/** On a connection of the pool, NotRun only wraps the error that kept BEGIN from running: show that error. */
function unwrapNotRun(error: unknown): unknown {
  return error instanceof NotRun && error.cause !== undefined ? error.cause : error;
}
