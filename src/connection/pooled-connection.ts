import type { Reply } from '../base/reply.js';
import type { Statement, StatementResult } from '../database/database.js';
import { type FlightClass, type FlightContext, flightClass, type QueryClass } from './flight.js';
import type { Parsing } from './messages.js';
import { Prepared } from './prepared.js';

/** A client of pg that was taken from its pool. */
export interface PgClient {
  query(query: unknown, callback?: (error?: unknown) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  release(error?: Error | boolean): void;
  /** `I`: outside a transaction, `T`: inside one, `E`: inside a failed one. pg 8.23 and later. */
  getTransactionStatus?(): string | null;
}

/** The part of pg's pool that is used. */
export interface PgPool {
  connect(): Promise<PgClient>;
  query(...given: unknown[]): unknown;
  readonly waitingCount: number;
  readonly ending: boolean;
  readonly Client: { readonly Query: QueryClass };
}

/** The result of a query of pg. */
export interface PgResult {
  readonly command: string;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** A tracer of pg wraps the callback, and learns from it that the query has ended. */
const ENDED = () => {};

const preparedOf = new WeakMap<PgPool, Prepared>();

/**
 * A pooled connection, from when it leaves the pool until it goes back. Several transactions may follow each other on
 * it.
 */
export class PooledConnection implements FlightContext {
  readonly #client: PgClient;
  readonly #prepared: Prepared;
  readonly #pool: PgPool;
  readonly #Flight: FlightClass;
  /** The number of flights without a complete answer. */
  #inFlight = 0;
  #broken = false;
  /** Whether a flight has failed, so that the transaction status is unknown. */
  #isStatusUnknown = false;
  #isReturning = false;
  #isReleased = false;

  constructor(client: PgClient, pool: PgPool) {
    this.#client = client;
    this.#pool = pool;
    this.#Flight = flightClass(pool.Client.Query);
    const prepared = preparedOf.get(pool) ?? new Prepared();
    preparedOf.set(pool, prepared);
    this.#prepared = prepared;
    // A connection that breaks while idle emits `error`, which ends the process if there is no listener.
    client.on('error', this.#onError);
  }

  get client(): PgClient {
    return this.#client;
  }

  get isWaitedFor(): boolean {
    return this.#pool.waitingCount > 0 || this.#pool.ending;
  }

  get status(): string | null | undefined {
    return this.#client.getTransactionStatus?.();
  }

  /** `undefined` while a flight has no complete answer: the status is still that of before. */
  get settledStatus(): string | null | undefined {
    return this.#inFlight > 0 ? undefined : this.status;
  }

  /** Sends the statements in one write. */
  sendFlight(statements: readonly Statement[]): readonly Reply<StatementResult>[] {
    this.#inFlight++;
    const flight = new this.#Flight(statements, this);
    this.#client.query(flight, ENDED);
    return flight.replies;
  }

  parsingOf(statement: Statement): Parsing {
    return this.#prepared.parsingOf(this.#client, statement);
  }

  markPrepared(name: string): void {
    this.#prepared.markPrepared(this.#client, name);
  }

  errorOf(error: unknown): unknown {
    return this.#prepared.errorOf(error);
  }

  /** Sends one statement by the extended protocol, in which the server refuses a text with several statements. */
  send(config: Record<string, unknown>): Promise<PgResult> {
    config['queryMode'] = 'extended';
    return this.#client.query(config) as Promise<PgResult>;
  }

  async rollback(): Promise<void> {
    await this.send({ text: 'ROLLBACK' });
    this.#isStatusUnknown = false;
  }

  /**
   * Returns the connection to the pool when everything in flight is answered. Closes it instead if it is not usable.
   */
  returnToPool(): void {
    if (this.#isReturning) return;
    this.#isReturning = true;
    if (this.#inFlight === 0) this.#finishReturn();
  }

  destroy(): void {
    this.#broken = true;
    this.#releaseClient();
  }

  onEnd(failed: boolean): void {
    this.#inFlight--;
    // Two failures in a row: the connection is broken, it was not a statement that failed.
    this.#broken ||= failed && this.#isStatusUnknown;
    this.#isStatusUnknown = failed;
    if (this.#isReturning && this.#inFlight === 0) this.#finishReturn();
  }

  /** After an error, pg updates the status only with the next answer. A flight without statements gets one. */
  #finishReturn(): void {
    if (this.#isStatusUnknown && !this.#broken) this.sendFlight([]);
    else this.#releaseClient();
  }

  readonly #onError = (): void => {
    this.#broken = true;
    if (this.#isReturning) this.#releaseClient();
  };

  #releaseClient(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#client.removeListener('error', this.#onError);
    // Never return it inside a transaction: the pool's next user would commit that transaction.
    const whole = !this.#broken && (this.status === 'I' || this.status === undefined);
    this.#client.release(whole ? undefined : true);
  }
}
