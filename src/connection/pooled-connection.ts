import type { Reply } from '../base/reply.js';
import type { Statement, StatementResult } from '../database/database.js';
import { type FlightContext, flightClass } from './flight.js';
import type { PgClient, PgPool, PgResult, ReadyForQuery } from './pg.js';
import { isPlain, workQueryClass } from './work-query.js';

/** A tracer of pg wraps the callback, and learns from it that the query has ended. */
const ENDED = () => {};

/**
 * Pools behind which a pooler in transaction mode, or `DISCARD ALL`, has taken prepared statements from a session: their
 * statements are sent without names from then on.
 */
const withoutNames = new WeakSet<PgPool>();

/**
 * The transaction status of each client that does not tell it itself: before 8.22, pg passes the server's message on
 * and forgets it. Without the status, a transaction that its own SQL has ended would be reported as committed.
 */
const heardStatus = new WeakMap<PgClient, string | undefined>();

function hearStatus(client: PgClient): void {
  if (heardStatus.has(client)) return;
  heardStatus.set(client, undefined);
  // In front of pg's own listener, which tells the query that it has ended.
  client.connection?.prependListener('readyForQuery', ({ status }: ReadyForQuery) => heardStatus.set(client, status));
}

/**
 * A pooled connection, from when it leaves the pool until it goes back. Several transactions may follow each other on
 * it.
 */
export class PooledConnection implements FlightContext {
  readonly client: PgClient;
  readonly pool: PgPool;
  /** The error that the client emitted, as when the server ends the session while nothing is in flight. */
  closedBy: unknown;
  /** Called with that error. */
  onClosed: ((error: unknown) => void) | undefined;
  /** The number of flights without a complete answer. */
  #inFlight = 0;
  #broken = false;
  /** Whether a flight has failed, so that the transaction status is unknown. */
  #isStatusUnknown = false;
  #isReturning = false;
  #isReleased = false;

  constructor(client: PgClient, pool: PgPool) {
    this.client = client;
    this.pool = pool;
    if (client.getTransactionStatus === undefined) hearStatus(client);
    // A connection that breaks while idle emits `error`, which ends the process if there is no listener.
    client.on('error', this.#onError);
  }

  /** Whether somebody waits for a connection of the pool. */
  get isWaitedFor(): boolean {
    return this.pool.waitingCount > 0 || this.pool.ending;
  }

  /** pg's transaction status, if it is known. While a flight has no complete answer, it is still that of before. */
  get status(): string | null | undefined {
    const { client } = this;
    return client.getTransactionStatus === undefined ? heardStatus.get(client) : client.getTransactionStatus();
  }

  /** Whether the server has said that there is no transaction. */
  get isOutside(): boolean {
    return this.#inFlight === 0 && this.status === 'I';
  }

  get mayUseNames(): boolean {
    return !withoutNames.has(this.pool);
  }

  onNamesLost(): void {
    withoutNames.add(this.pool);
  }

  /** Sends the statements in one write. */
  sendFlight(statements: readonly Statement[]): readonly Reply<StatementResult>[] {
    this.#inFlight++;
    const Flight = flightClass(this.pool.Client.Query);
    const flight = new Flight(statements, this);
    this.client.query(flight, ENDED);
    return flight.replies;
  }

  /** Sends one statement by the extended protocol, in which the server refuses a text with several statements. */
  send(config: Record<string, unknown>): Promise<PgResult> {
    if (isPlain(config)) {
      const WorkQuery = workQueryClass(this.pool.Client.Query);
      const query = new WorkQuery(config);
      this.client.query(query);
      return query.answer;
    }
    // Not itself, which may be frozen, and field by field: those of a library's own class may be getters. Without a `query_timeout`.
    const { text, values, name, rowMode, types, rows, binary } = config;
    return this.client.query({
      text,
      values,
      name,
      rowMode,
      types,
      rows,
      binary,
      queryMode: 'extended',
    }) as Promise<PgResult>;
  }

  async rollback(): Promise<void> {
    await this.send({ text: 'ROLLBACK' });
    this.#isStatusUnknown = false;
  }

  /** Returns it to the pool when everything in flight is answered. Closes it instead if it is not usable. */
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

  readonly #onError = (error: unknown): void => {
    this.#broken = true;
    // The first one: the end of the connection, which follows, does not say why.
    this.closedBy ??= error;
    this.onClosed?.(error);
    if (this.#isReturning) this.#releaseClient();
  };

  #releaseClient(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.client.removeListener('error', this.#onError);
    // Never return it inside a transaction: the pool's next user would commit that transaction.
    const isWhole = !this.#broken && (this.status === 'I' || this.status === undefined);
    this.client.release(isWhole ? undefined : true);
  }
}
