import { scopeWith } from '../base/scope.js';
import { type Connection, NotRun, type OpeningOptions } from '../database/database.js';
import { AdapterConnection, type AdapterTransaction } from './adapter-connection.js';
import { refusalOfWrite, refusingWrites } from './outside.js';
import { PgConnection } from './pg-connection.js';
import { type PgClient, PgLine, type PgPool } from './pg-line.js';

/**
 * The right of one transaction to a fenced connection. The database client asks its pool for a connection somewhere deep
 * inside; the async context that it does so in tells which transaction it is for.
 */
export class Ticket {
  /** Both forgotten once they have served: timers and sockets keep the async context that they were made in. */
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

  /** The first connection is its own; what the work itself connects is none of ours. */
  get isOpen(): boolean {
    return !this.#used && !this.#closed;
  }

  /** Whether the transaction is on its connection. */
  get used(): boolean {
    return this.#used;
  }

  close(): void {
    this.#closed = true;
  }

  /** What the database client gets instead of a connection of the pool. */
  async take(pool: PgPool, connect: () => Promise<PgClient>): Promise<PgClient> {
    this.#used = true;
    if (!this.#evenIfWanted && pool.waitingCount > 0) throw new NotRun('others wait for a connection');
    const { facade } = this.#had(this.#over ?? new PgConnection(new PgLine(await connect(), pool))) as PgConnection;
    return facade;
  }

  /** The same for an adapter without a pool of pg. */
  takeOther(transaction: AdapterTransaction): AdapterTransaction {
    this.#used = true;
    // Made here: what fenced the adapter may be another copy of this package, whose classes are not this one's.
    return this.#had(new AdapterConnection(transaction)).facade;
  }

  #had<C extends Connection>(connection: C): C {
    this.#connected(connection);
    this.#over = undefined;
    this.#connected = () => {};
    return connection;
  }
}

/** That of the transaction for which a connection is fetched in the present async context, while it has none. */
export function openTicket(): Ticket | undefined {
  const ticket = scopeWith('ticket')?.inside.ticket as Ticket | undefined;
  return ticket?.isOpen ? ticket : undefined;
}

const FENCED = Symbol.for('prisma-extension-fenced-lock.fenced');

/**
 * Has the pool give a fenced connection to the transaction of a lock, and to everybody else what it always gave.
 * `inLock`: whether the present async context is the function of a lock.
 */
export function fencePool(pool: PgPool & { [FENCED]?: true }, inLock: () => boolean): void {
  if (pool[FENCED]) return;
  Object.defineProperty(pool, FENCED, { value: true });
  const { connect, query } = pool;
  pool.connect = function (this: PgPool, ...given: unknown[]) {
    const ticket = given.length === 0 ? openTicket() : undefined;
    if (ticket !== undefined) return ticket.take(this, () => connect.call(this));
    const client = connect.apply(this, given as []);
    return given.length === 0 && inLock() ? client.then(refusingWrites) : client;
  };
  pool.query = function (this: PgPool, ...given: unknown[]) {
    const refusal = refusalOfWrite();
    return refusal ? Promise.reject(refusal) : query.apply(this, given);
  };
}
