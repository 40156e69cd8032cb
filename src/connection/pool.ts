import { now } from '../base/clock.js';
import { dropOldest } from '../base/drop-oldest.js';
import { onceForEach } from '../base/once-for-each.js';
import { plainTransactionBegun } from '../base/plain-transactions.js';
import type { Reply } from '../base/reply.js';
import { scopeWith } from '../base/scope.js';
import { type Connection, NotRun, type Place, type Statement, type StatementResult } from '../database/database.js';
import { AdapterConnection, type AdapterTransaction } from './adapter-connection.js';
import { type FlightClass, type FlightContext, flightClass, Prepared } from './flight.js';
import type { PgClient, PgPool, PgResult, ReadyForQuery } from './pg.js';
import { type BorrowedConnection, PgConnection } from './pg-connection.js';
import { isPlain, type StatementEnd, type WorkQueryClass, workQueryClass } from './work-query.js';

/**
 * Entitles one transaction to a fenced connection. The database client asks its pool for a connection deep inside its
 * own code. The async context of that request tells which transaction it is for.
 */
export class Ticket {
  /** Only the first connection is for the transaction. Further ones are requested by the work itself. */
  isOpen = true;
  /** The pool or the adapter that gave the transaction its connection; `undefined` before that. */
  source: object | undefined;
  /** Dropped after use: timers and sockets keep the async context that they were created in, and this object with it. */
  #place: Place | undefined;
  readonly #evenIfWanted: boolean;

  constructor(place: Place, evenIfWanted: boolean) {
    this.#place = place;
    this.#evenIfWanted = evenIfWanted;
  }

  /** Returns the facade that the database client gets instead of a connection of the pool. */
  async takeFromPool(pool: PgPool, connect: () => Promise<PgClient>): Promise<PgClient> {
    this.isOpen = false;
    this.source = pool;
    if (!this.#evenIfWanted && pool.waitingCount > 0) throw new NotRun('others wait for a connection');
    const over = this.#place?.over as PgConnection | undefined;
    // An extension may choose the client, and so the database, for each transaction by itself.
    if (over?.pool !== undefined && over.pool !== pool) throw new NotRun('the transaction begins on another pool');
    return this.#connected(over ?? new PgConnection(new PooledConnection(await connect(), pool))).facade;
  }

  /** The same for an adapter without a pool of pg. */
  takeFromAdapter(
    transaction: AdapterTransaction,
    adapter: object,
    isLoss: (error: unknown) => boolean,
  ): AdapterTransaction {
    this.isOpen = false;
    this.source = adapter;
    // The connection is created here, because the adapter may have been wrapped by another copy of this package, with
    // other classes.
    return this.#connected(new AdapterConnection(transaction, isLoss)).facade;
  }

  #connected<C extends Connection>(connection: C): C {
    this.#place?.connected(connection);
    this.#place = undefined;
    return connection;
  }
}

/** The ticket of the transaction that requests a connection in this async context, if it has none yet. */
export function openTicket(): Ticket | undefined {
  const ticket = scopeWith('ticket')?.inside.ticket as Ticket | undefined;
  return ticket?.isOpen ? ticket : undefined;
}

const FENCED = Symbol.for('prisma-extension-fenced-lock.fenced');

/** Pools of which every plain transaction is counted: none was open when they were fenced. */
const countedPools = new WeakSet<object>();

/** Whether all plain transactions on this pool or adapter are counted. An adapter is fenced before its first one. */
export function isCounted(source: object): boolean {
  return !('idleCount' in source) || countedPools.has(source);
}

/** Makes the pool give a fenced connection to the transaction of a lock. Other callers get what the pool always gave. */
export function fencePool(pool: PgPool & { [FENCED]?: true }): void {
  if (pool[FENCED]) return;
  Object.defineProperty(pool, FENCED, { value: true });
  if (pool.totalCount === pool.idleCount && pool.waitingCount === 0) countedPools.add(pool);
  // Behind a connection that the pool has just handed over there is nobody to hear that it ends in the same moment, and an
  // event without a listener would end the process. The first statement on it fails.
  pool.on('connect', (client) => client.on('error', () => {}));
  const { connect } = pool;
  pool.connect = function (this: PgPool, ...given: unknown[]) {
    // With a callback it is `pool.query`, or a user of plain pg: no transaction of Prisma's.
    if (given.length > 0) return connect.apply(this, given as []);
    const ticket = openTicket();
    return ticket === undefined
      ? connect.call(this).then(untilReleased)
      : ticket.takeFromPool(this, () => connect.call(this));
  };
}

/** Counts the transaction that the connection was taken for. The pool sets `release` anew each time. */
function untilReleased(client: PgClient): PgClient {
  const ended = plainTransactionBegun();
  const { release } = client;
  client.release = (error) => {
    ended();
    release.call(client, error);
  };
  return client;
}

/** The adapter factories that connected a pool, or an adapter without one. A pool of the caller's may have several. */
const factoriesOf = new WeakMap<object, WeakSet<object>>();

export function rememberFactory(source: object, factory: object): void {
  const factories = factoriesOf.get(source) ?? new WeakSet();
  factoriesOf.set(source, factories.add(factory));
}

/** Whether other factories than this one connected the pool or adapter; `false` if that is not known. */
export function isOfAnother(source: object, factory: object | undefined): boolean {
  return factory !== undefined && factoriesOf.get(source)?.has(factory) === false;
}

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
  readonly Flight: FlightClass;
  readonly WorkQuery: WorkQueryClass;
  readonly prepared: Prepared;
  /**
   * The process ids of backends whose connections were lost, the oldest first, and when each was there. Where only the
   * client knows of the loss (a NAT or a firewall has dropped the connection), they stay inside their transactions.
   */
  readonly lostBackends: Map<number, number>;
}

const MOST_LOST_BACKENDS = 100;
const memoryOf = onceForEach(
  ({ Client: { Query } }: PgPool): Memory => ({
    Flight: flightClass(Query),
    WorkQuery: workQueryClass(Query),
    prepared: new Prepared(),
    lostBackends: new Map(),
  }),
);

/**
 * A pooled connection, from when it leaves the pool until it goes back. Several transactions may follow each other on
 * it.
 */
export class PooledConnection implements BorrowedConnection, FlightContext {
  readonly client: PgClient;
  readonly pool: PgPool;
  readonly prepared: Prepared;
  readonly lostBackends: Map<number, number>;
  closedBy: unknown;
  onClosed: ((error: unknown) => void) | undefined;
  answered = 0;
  readonly #memory: Memory;
  readonly #takenAt = now();
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
    this.#memory = memoryOf(pool);
    this.prepared = this.#memory.prepared;
    this.lostBackends = this.#memory.lostBackends;
    if (client.getTransactionStatus === undefined) hearStatus(client);
    // A connection that breaks while idle emits `error`, which ends the process if there is no listener.
    client.on('error', this.#onError);
  }

  get isWaitedFor(): boolean {
    return this.pool.waitingCount > 0 || this.pool.ending;
  }

  get status(): string | null | undefined {
    const { client } = this;
    return client.getTransactionStatus === undefined ? heardStatus.get(client) : client.getTransactionStatus();
  }

  get settledStatus(): string | null | undefined {
    return this.#inFlight > 0 ? undefined : this.status;
  }

  sendFlight(statements: readonly Statement[]): readonly Reply<StatementResult>[] {
    this.#inFlight++;
    const flight = new this.#memory.Flight(statements, this);
    this.client.query(flight, ENDED);
    return flight.replies;
  }

  send(config: Record<string, unknown>): Promise<PgResult> {
    config['queryMode'] = 'extended';
    return this.client.query(config) as Promise<PgResult>;
  }

  sendWork(config: Record<string, unknown>, end: StatementEnd): Promise<PgResult> {
    if (isPlain(config) && !this.client.binary) {
      const query = new this.#memory.WorkQuery(config, end);
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
    this.closedBy ??= error;
    this.onClosed?.(error);
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
    this.lostBackends.set(processID, this.#takenAt);
    if (this.lostBackends.size > MOST_LOST_BACKENDS) dropOldest(this.lostBackends);
  }
}
