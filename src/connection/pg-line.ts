import type { Reply } from '../base/reply.js';
import type { Statement, StatementResult } from '../database/database.js';
import { type Departure, type FlightClass, flightClass, type QueryClass } from './flight.js';
import type { Parsing } from './messages.js';
import { Prepared } from './prepared.js';

/** A client of pg, out of its pool. */
export interface PgClient {
  query(query: unknown): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  release(error?: Error | boolean): void;
  /** `I` outside a transaction, `T` inside one, `E` inside a failed one; pg 8.23 and later. */
  getTransactionStatus?(): string | null;
}

/** A pool of pg, as far as it is used. */
export interface PgPool {
  connect(): Promise<PgClient>;
  query(...given: unknown[]): unknown;
  readonly waitingCount: number;
  readonly ending: boolean;
  readonly Client: { readonly Query: QueryClass };
}

/** What pg answers with. */
export interface PgResult {
  readonly command: string;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

const preparedOf = new WeakMap<PgPool, Prepared>();

/** A connection from when it leaves the pool until it goes back, for the transactions that follow each other on it. */
export class PgLine implements Departure {
  readonly #client: PgClient;
  readonly #prepared: Prepared;
  readonly #pool: PgPool;
  readonly #Flight: FlightClass;
  /** Flights that have not been answered to their end. */
  #inFlight = 0;
  #broken = false;
  /** Whether a flight has failed, behind which the status is not known. */
  #isUnsure = false;
  #leaving = false;
  #back = false;

  constructor(client: PgClient, pool: PgPool) {
    this.#client = client;
    this.#pool = pool;
    this.#Flight = flightClass(pool.Client.Query);
    const prepared = preparedOf.get(pool) ?? new Prepared();
    preparedOf.set(pool, prepared);
    this.#prepared = prepared;
    // One that breaks while nothing is in flight says so by an event, which ends the process where nobody listens.
    client.on('error', this.#onError);
  }

  get client(): PgClient {
    return this.#client;
  }

  get isWanted(): boolean {
    return this.#pool.waitingCount > 0 || this.#pool.ending;
  }

  get status(): string | null | undefined {
    return this.#client.getTransactionStatus?.();
  }

  /** Sends the statements in one write. */
  fly(statements: readonly Statement[]): readonly Reply<StatementResult>[] {
    this.#inFlight++;
    const flight = new this.#Flight(statements, this);
    this.#client.query(flight);
    return flight.replies;
  }

  parsingOf(statement: Statement): Parsing {
    return this.#prepared.parsingOf(this.#client, statement);
  }

  learn(name: string): void {
    this.#prepared.learn(this.#client, name);
  }

  errorOf(error: unknown): unknown {
    return this.#prepared.errorOf(error);
  }

  /** One statement; always by the extended protocol, in which the server refuses a text with several. */
  send(config: Record<string, unknown>): Promise<PgResult> {
    config['queryMode'] = 'extended';
    return this.#client.query(config) as Promise<PgResult>;
  }

  async rollback(): Promise<void> {
    await this.send({ text: 'ROLLBACK' });
    this.#isUnsure = false;
  }

  /** Back to the pool once what is in flight is answered; closed where it is not as it was. */
  giveBack(): void {
    if (this.#leaving) return;
    this.#leaving = true;
    if (this.#inFlight === 0) this.#settle();
  }

  destroy(): void {
    this.#broken = true;
    this.#leave();
  }

  onEnd(failed: boolean): void {
    this.#inFlight--;
    // Twice in a row: it was no statement that failed.
    this.#broken ||= failed && this.#isUnsure;
    this.#isUnsure = failed;
    if (this.#leaving && this.#inFlight === 0) this.#settle();
  }

  /** Behind an error pg tells the status only with the next answer, and a flight without statements has one. */
  #settle(): void {
    if (this.#isUnsure && !this.#broken) this.fly([]);
    else this.#leave();
  }

  readonly #onError = (): void => {
    this.#broken = true;
    if (this.#leaving) this.#leave();
  };

  #leave(): void {
    if (this.#back) return;
    this.#back = true;
    this.#client.removeListener('error', this.#onError);
    // Never inside a transaction: the pool's next user would commit it.
    const whole = !this.#broken && (this.status === 'I' || this.status === undefined);
    this.#client.release(whole ? undefined : true);
  }
}
