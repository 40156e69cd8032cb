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

/** How an entry is made. */
export interface EntryOptions extends BeginOptions {
  /** What errors name. */
  readonly key: string;
  /** Whether some writes need a condition of ours. */
  readonly hooked: boolean;
  /** What is asked for, when the connection is had. */
  readonly request: () => AdmissionRequest;
  /** Whether it begins where others wait for a connection of the pool. Default: it does. */
  readonly evenIfWanted?: boolean;
  /** Statements before the admission, in the same transaction. */
  readonly before?: readonly Statement[];
}

/**
 * A transaction on its way to its admission: a connection is fetched from the pool, or is had from the turn before, and
 * BEGIN and the admission go out on it together.
 */
export class Entry<Tx> {
  /** Resolves with Postgres's yes; rejects where it says no, or was never asked. */
  readonly admission = new Reply<Admission>();
  /** The answers to the statements before the admission. */
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
        (error) => this.admission.reject(over === undefined ? whyOf(error) : error),
      );
    };
    this.#over = over;
    this.#opening = database.open({ ...options, evenIfWanted: options.evenIfWanted ?? true, over, connected });
  }

  /** On a connection of the pool. */
  static open<Tx>(database: Database<Tx>, options: EntryOptions): Entry<Tx> {
    return new Entry(database, options, undefined, undefined);
  }

  /** On the connection of the turn before, with whose COMMIT its beginning was sent. */
  static follow<Tx>(database: Database<Tx>, options: EntryOptions, over: Connection, asked: AskedFor): Entry<Tx> {
    return new Entry(database, options, over, asked);
  }

  run(hook: Hook, body: (tx: Tx, close: () => void) => Promise<void>): Promise<void> {
    return this.#opening.run(hook, body);
  }

  /** The database client's transaction is over. One that was disconnected meanwhile has begun nothing. */
  over(): void {
    // Its beginning is under way all the same.
    if (this.connection === undefined) this.#over?.abandon();
  }

  /** Instead of `run`: rolls back, and gives the connection back. */
  discard(): void {
    this.abandon();
    this.#opening.discard();
  }

  /** Where the connection is not had yet, nothing is sent on it. */
  abandon(): void {
    this.#discarded = true;
  }
}

/** An admission that is asked for, and what it goes out with. */
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

/** Nothing came before it that would not be begun again with it. */
function whyOf(error: unknown): unknown {
  return error instanceof NotRun && error.cause !== undefined ? error.cause : error;
}
