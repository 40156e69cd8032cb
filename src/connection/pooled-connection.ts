import { now } from '../base/clock.js';
import { dropOldest } from '../base/drop-oldest.js';
import type { Reply } from '../base/reply.js';
import type { Statement, StatementResult } from '../database/database.js';
import { type FlightClass, type FlightContext, flightClass, Prepared } from './flight.js';
import type { PgClient, PgPool, PgResult, ReadyForQuery } from './pg.js';
import { isPlain, type StatementEnd, type WorkQueryClass, workQueryClass } from './work-query.js';

/** A tracer of pg wraps the callback, and learns from it that the query has ended. */
const ENDED = () => {};

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

/** What is remembered of a pool. */
interface Memory {
  readonly prepared: Prepared;
  /**
   * The process ids of backends whose connections were lost, the oldest first, and when each was there. Where only the
   * client knows of the loss (a NAT or a firewall has dropped the connection), they stay inside their transactions.
   */
  readonly lostBackends: Map<number, number>;
}

const MOST_LOST_BACKENDS = 100;
const memories = new WeakMap<PgPool, Memory>();

function memoryOf(pool: PgPool): Memory {
  const known = memories.get(pool);
  if (known !== undefined) return known;
  const memory = { prepared: new Prepared(), lostBackends: new Map<number, number>() };
  memories.set(pool, memory);
  return memory;
}

/**
 * A pooled connection, from when it leaves the pool until it goes back. Several transactions may follow each other on
 * it.
 */
export class PooledConnection implements FlightContext {
  readonly client: PgClient;
  readonly pool: PgPool;
  readonly #memory: Memory;
  readonly #Flight: FlightClass;
  readonly #WorkQuery: WorkQueryClass;
  readonly #takenAt = now();
  /** How many flights have been answered. */
  answered = 0;
  /** The number of flights without a complete answer. */
  #inFlight = 0;
  #broken = false;
  #closedBy: unknown;
  /** Whether a flight has failed, so that the transaction status is unknown. */
  #isStatusUnknown = false;
  #isReturning = false;
  #isReleased = false;

  constructor(client: PgClient, pool: PgPool) {
    this.client = client;
    this.pool = pool;
    this.#Flight = flightClass(pool.Client.Query);
    this.#WorkQuery = workQueryClass(pool.Client.Query);
    this.#memory = memoryOf(pool);
    if (client.getTransactionStatus === undefined) hearStatus(client);
    // A connection that breaks while idle emits `error`, which ends the process if there is no listener.
    client.on('error', this.#onError);
  }

  get prepared(): Prepared {
    return this.#memory.prepared;
  }

  /** The process ids of the backends whose connections the pool has lost, and when each was there. */
  get lostBackends(): ReadonlyMap<number, number> {
    return this.#memory.lostBackends;
  }

  /** Whether somebody waits for a connection of the pool. */
  get isWaitedFor(): boolean {
    return this.pool.waitingCount > 0 || this.pool.ending;
  }

  /** pg's transaction status, if it is known. */
  get status(): string | null | undefined {
    const { client } = this;
    return client.getTransactionStatus === undefined ? heardStatus.get(client) : client.getTransactionStatus();
  }

  /** The error that the client emitted, as when the server ends the session while nothing is in flight. */
  get closedBy(): unknown {
    return this.#closedBy;
  }

  /** `undefined` while a flight has no complete answer: the status is still that of before. */
  get settledStatus(): string | null | undefined {
    return this.#inFlight > 0 ? undefined : this.status;
  }

  /** Sends the statements in one write. */
  sendFlight(statements: readonly Statement[]): readonly Reply<StatementResult>[] {
    this.#inFlight++;
    const flight = new this.#Flight(statements, this);
    this.client.query(flight, ENDED);
    return flight.replies;
  }

  /** Sends one statement by the extended protocol, in which the server refuses a text with several statements. */
  send(config: Record<string, unknown>): Promise<PgResult> {
    config['queryMode'] = 'extended';
    return this.client.query(config) as Promise<PgResult>;
  }

  /** The same for a statement of the work. */
  sendWork(config: Record<string, unknown>, end: StatementEnd): Promise<PgResult> {
    if (isPlain(config) && !this.client.binary) {
      const query = new this.#WorkQuery(config, end);
      this.client.query(query, query.ended);
      return query.result;
    }
    return this.send(config).then(
      (result) => {
        end.answered(result);
        return result;
      },
      (error: unknown) => {
        throw end.failed(error);
      },
    );
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
    this.answered++;
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
    this.#noteLost();
    // The first one: the end of the connection, which follows, does not say why.
    this.#closedBy ??= error;
    if (this.#isReturning) this.#releaseClient();
  };

  #releaseClient(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.client.removeListener('error', this.#onError);
    // Never return it inside a transaction: the pool's next user would commit that transaction.
    const whole = !this.#broken && (this.status === 'I' || this.status === undefined);
    if (!whole) this.#noteLost();
    this.client.release(whole ? undefined : true);
  }

  #noteLost(): void {
    const { processID } = this.client;
    if (!processID) return;
    const { lostBackends } = this.#memory;
    lostBackends.set(processID, this.#takenAt);
    if (lostBackends.size > MOST_LOST_BACKENDS) dropOldest(lostBackends);
  }
}
