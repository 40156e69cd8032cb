import { scopeWith } from '../base/scope.js';
import { type Connection, NotRun, type OpeningOptions } from '../database/database.js';
import { AdapterConnection, type AdapterTransaction } from './adapter-connection.js';
import { refusalOfWrite, refusingWrites } from './outside.js';
import { PgConnection } from './pg-connection.js';
import { type PgClient, type PgPool, PooledConnection } from './pooled-connection.js';

/**
 * Entitles one transaction to a fenced connection. The database client asks its pool for a connection deep inside its
 * own code. The async context of that request tells which transaction it is for.
 */
export class Ticket {
  /**
   * Both are dropped after use: timers and sockets keep the async context that they were created in, and this object
   * with it.
   */
  #over: Connection | undefined;
  #connected: (connection: Connection) => void;
  readonly #evenIfWanted: boolean;
  #used = false;
  #closed = false;

  constructor({ over, connected, evenIfWanted }: Pick<OpeningOptions, 'over' | 'connected' | 'evenIfWanted'>) {
    this.#evenIfWanted = evenIfWanted;
    this.#over = over;
    this.#connected = connected;
  }

  /** Only the first connection is for the transaction. Further ones are requested by the work itself. */
  get isOpen(): boolean {
    return !this.#used && !this.#closed;
  }

  /** Whether the transaction has its connection. */
  get used(): boolean {
    return this.#used;
  }

  close(): void {
    this.#closed = true;
  }

  /** Returns the facade that the database client gets instead of a connection of the pool. */
  async takeFromPool(pool: PgPool, connect: () => Promise<PgClient>): Promise<PgClient> {
    this.#used = true;
    if (!this.#evenIfWanted && pool.waitingCount > 0) throw new NotRun('others wait for a connection');
    const { facade } = this.#handOver(
      this.#over ?? new PgConnection(new PooledConnection(await connect(), pool)),
    ) as PgConnection;
    return facade;
  }

  /** The same for an adapter without a pool of pg. */
  takeFromAdapter(transaction: AdapterTransaction): AdapterTransaction {
    this.#used = true;
    // The connection is created here, because the adapter may have been wrapped by another copy of this package, with
    // other classes.
    return this.#handOver(new AdapterConnection(transaction)).facade;
  }

  #handOver<C extends Connection>(connection: C): C {
    this.#connected(connection);
    this.#over = undefined;
    this.#connected = () => {};
    return connection;
  }
}

/** The ticket of the transaction that requests a connection in this async context, if it has none yet. */
export function openTicket(): Ticket | undefined {
  const ticket = scopeWith('ticket')?.inside.ticket as Ticket | undefined;
  return ticket?.isOpen ? ticket : undefined;
}

const FENCED = Symbol.for('prisma-extension-fenced-lock.fenced');

/**
 * Makes the pool give a fenced connection to the transaction of a lock. Other callers get what the pool always gave.
 *
 * @param inLock whether the present async context is the function of a lock.
 */
export function fencePool(pool: PgPool & { [FENCED]?: true }, inLock: () => boolean): void {
  if (pool[FENCED]) return;
  Object.defineProperty(pool, FENCED, { value: true });
  const { connect, query } = pool;
  pool.connect = function (this: PgPool, ...given: unknown[]) {
    const ticket = given.length === 0 ? openTicket() : undefined;
    if (ticket !== undefined) return ticket.takeFromPool(this, () => connect.call(this));
    const client = connect.apply(this, given as []);
    return given.length === 0 && inLock() ? client.then(refusingWrites) : client;
  };
  pool.query = function (this: PgPool, ...given: unknown[]) {
    const refusal = refusalOfWrite();
    return refusal ? Promise.reject(refusal) : query.apply(this, given);
  };
}
