import { ensure } from '../base/checks.js';
import { OVERDUE, within } from '../base/clock.js';
import { LockUnavailableError } from '../base/errors.js';
import { processWide } from '../base/process-wide.js';
import { scopes } from '../base/scope.js';
import { type Connection, NotRun, type Place } from '../database/database.js';
import { AdapterConnection, type AdapterTransaction } from './adapter-connection.js';
import type { PgClient, PgPool } from './pg.js';
import { PgConnection } from './pg-connection.js';
import { PooledConnection } from './pooled-connection.js';

/** How long a call waits for a connection of the pool, where the database client sets no limit itself; milliseconds. */
export interface WaitLimit {
  readonly key: string;
  readonly maxWait: number;
}

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
  readonly #limit: WaitLimit | undefined;

  constructor(place: Place, evenIfWanted: boolean, limit?: WaitLimit) {
    this.#place = place;
    this.#evenIfWanted = evenIfWanted;
    this.#limit = limit;
  }

  /** Returns the facade that the database client gets instead of a connection of the pool. */
  async takeFromPool(pool: PgPool, connect: () => Promise<PgClient>): Promise<PgClient> {
    this.isOpen = false;
    this.source = pool;
    if (!this.#evenIfWanted && pool.waitingCount > 0) throw new NotRun('others wait for a connection');
    const over = this.#place?.over as PgConnection | undefined;
    // An extension may choose the client, and so the database, for each transaction by itself.
    if (over?.pool !== undefined && over.pool !== pool) throw new NotRun('the transaction begins on another pool');
    return this.#connected(over ?? new PgConnection(new PooledConnection(await this.#had(connect()), pool))).facade;
  }

  async #had(connected: Promise<PgClient>): Promise<PgClient> {
    if (this.#limit === undefined) return await connected;
    const { key, maxWait } = this.#limit;
    const client = await within(connected, maxWait);
    if (client !== OVERDUE) return client;
    connected.then(
      (late) => late.release(),
      () => {},
    );
    const cause = new Error('the pool had no connection (`maxWait`)');
    throw new LockUnavailableError(key, cause, { server: 'Postgres', within: maxWait });
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
  const [ticket] = scopes().flatMap(({ inside: { ticket } }) => (ticket === undefined ? [] : [ticket as Ticket]));
  return ticket?.isOpen ? ticket : undefined;
}

const FENCED = Symbol.for('prisma-extension-fenced-lock.fenced');

/** Pools of which every plain transaction is counted: none was open when they were fenced. */
const countedPools = new WeakSet<object>();

/** Whether all plain transactions on this pool or adapter are counted. An adapter is fenced before its first one. */
export function isCounted(source: object): boolean {
  return !('idleCount' in source) || countedPools.has(source);
}

export function isPool(driver: unknown): driver is PgPool {
  const { connect, Client, waitingCount } = (driver ?? {}) as Partial<PgPool>;
  return typeof connect === 'function' && typeof Client?.Query === 'function' && typeof waitingCount === 'number';
}

/** @param settings of a pool. @throws InvalidOptionError */
export function refuseQueryTimeout(settings: object | undefined): void {
  const { query_timeout: limit, connectionString: url } = (settings ?? {}) as Readonly<Record<string, unknown>>;
  ensure(
    !limit && !/[?&]query_timeout=/.test(String(url)),
    'query_timeout',
    'of the pg pool must not be set: it drops a queued ROLLBACK and returns the connection to the pool inside the open ' +
      'transaction, which the next caller then commits. Use statement_timeout, or the `timeout` of the lock.',
  );
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

/**
 * How many transactions that are not of a lock are open on fenced pools and adapters. Another copy of this package may
 * have fenced the pool.
 */
const plain = processWide('plain-transactions', () => ({ open: 0 }));

/** Counts one until the returned function is called. */
export function plainTransactionBegun(): () => void {
  plain.open++;
  let isOpen = true;
  return () => {
    if (isOpen) plain.open--;
    isOpen = false;
  };
}

export function isPlainTransactionOpen(): boolean {
  return plain.open > 0;
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
