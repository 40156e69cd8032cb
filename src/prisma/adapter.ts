import { processWide } from '../base/process-wide.js';
import type { AdapterTransaction } from '../connection/adapter-connection.js';
import { isLoss } from '../connection/errors.js';
import type { PgPool } from '../connection/pg.js';
import { fencePool, isPool, openTicket, plainTransactionBegun, rememberFactory } from '../connection/pool.js';
import type { AdapterFactory } from './internals.js';

/** The object that a driver adapter factory's `connect()` returns. */
interface ClientAdapter {
  startTransaction(isolationLevel?: string): Promise<AdapterTransaction>;
  getConnectionInfo?(): { readonly schemaName?: string };
  underlyingDriver?(): unknown;
}

const FENCED = Symbol.for('prisma-extension-fenced-lock.fenced');

/** Wraps the factory: transactions of locks get a fenced connection from the adapters that it connects. */
export function fenceFactory(factory: AdapterFactory & { [FENCED]?: true }): void {
  if (factory[FENCED]) return;
  const connect = factory.connect;
  Object.defineProperty(factory, FENCED, { value: true });
  factory.connect = async function (this: AdapterFactory | undefined) {
    const adapter = (await connect.call(this as AdapterFactory)) as ClientAdapter;
    const pool = fenceDriver(adapter);
    if (pool === undefined) fenceAdapter(adapter);
    const schema = adapter.getConnectionInfo?.().schemaName ?? DEFAULT_SCHEMA;
    // Where a client's own factory inherits from this one, `this` is that one. A wrapper may call the method without `this`.
    for (const one of this === undefined ? [factory] : [factory, this]) {
      rememberFactory(pool ?? adapter, one);
      schemas.set(one, schema);
    }
    return adapter;
  };
}

/** What Prisma takes where neither the model nor the adapter names a schema. */
const DEFAULT_SCHEMA = 'public';

/** The schemas of the factories that have connected, as their adapters tell them. */
const schemas = processWide('schemas', () => new WeakMap<object, string>());

/**
 * The schema of the tables whose models name none. `undefined` for a factory around another one that has not connected yet: only
 * the adapter knows its options.
 */
export function schemaOf(
  factory: AdapterFactory & { readonly options?: { readonly schema?: string } },
): string | undefined {
  return schemas.get(factory) ?? ('options' in factory ? (factory.options?.schema ?? DEFAULT_SCHEMA) : undefined);
}

/**
 * How many adapter classes are wrapped. A transaction that began before the last one may have an ordinary connection.
 */
export const fencedClasses = processWide('classes', () => ({ count: 0 }));

/**
 * The same for a client that had connected before the extension was applied: wraps its adapter class, which fences the
 * pool when a lock begins a transaction. Has no effect on adapters without a pool of pg.
 */
export async function fenceConnected(factory: AdapterFactory): Promise<void> {
  // The adapter opens no connection before its first query. It is not disposed of, because that would end a pool that
  // the caller owns.
  const adapter = (await factory.connect()) as ClientAdapter;
  const type = Object.getPrototypeOf(adapter) as Partial<ClientAdapter> & { [FENCED]?: true };
  const start = type.startTransaction;
  if (type[FENCED] || start === undefined || !isPool(adapter.underlyingDriver?.())) return;
  Object.defineProperty(type, FENCED, { value: true });
  type.startTransaction = async function (this: ClientAdapter, isolationLevel) {
    if (openTicket()) fenceDriver(this);
    return await start.call(this, isolationLevel);
  };
  fencedClasses.count++;
}

/** Fences the adapter's pool of pg. Returns it, if there is one. */
function fenceDriver(adapter: ClientAdapter): PgPool | undefined {
  const driver = adapter.underlyingDriver?.();
  if (!isPool(driver)) return undefined;
  fencePool(driver);
  return driver;
}

function fenceAdapter(adapter: ClientAdapter): void {
  // A factory may return the same adapter each time, so mark the instance, not the class.
  if (Object.hasOwn(adapter, FENCED)) return;
  Object.defineProperty(adapter, FENCED, { value: true });
  const start = adapter.startTransaction;
  adapter.startTransaction = async function (this: ClientAdapter, isolationLevel) {
    const ticket = openTicket();
    const transaction = await start.call(this, isolationLevel);
    return ticket === undefined ? untilEnded(transaction) : ticket.takeFromAdapter(transaction, this, isLoss);
  };
}

/** Counts a transaction that is not of a lock. */
function untilEnded(transaction: AdapterTransaction): AdapterTransaction {
  const ended = plainTransactionBegun();
  const { commit, rollback } = transaction;
  transaction.commit = () => {
    ended();
    return commit.call(transaction);
  };
  transaction.rollback = () => {
    ended();
    return rollback.call(transaction);
  };
  return transaction;
}
