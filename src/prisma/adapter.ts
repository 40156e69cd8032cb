import { heldKey } from '../base/held-keys.js';
import type { AdapterTransaction } from '../connection/adapter-connection.js';
import { refusalOfWrite } from '../connection/outside.js';
import type { PgPool } from '../connection/pg-line.js';
import { fencePool, openTicket } from '../connection/ticket.js';
import type { AdapterFactory } from './internals.js';

/** What a driver adapter's factory connects. */
interface ClientAdapter {
  queryRaw(query: unknown): Promise<unknown>;
  executeRaw(query: unknown): Promise<unknown>;
  startTransaction(isolationLevel?: string): Promise<AdapterTransaction>;
  underlyingDriver?(): unknown;
}

const FENCED = Symbol.for('prisma-extension-fenced-lock.fenced');

/** From now on what this factory connects gives the transactions of locks a fenced connection. */
export function fenceFactory(factory: AdapterFactory & { [FENCED]?: true }): void {
  if (factory[FENCED]) return;
  const connect = factory.connect;
  Object.defineProperty(factory, FENCED, { value: true });
  factory.connect = async function (this: AdapterFactory) {
    const adapter = (await connect.call(this)) as ClientAdapter;
    if (!fenceDriver(adapter)) fenceAdapter(adapter);
    return adapter;
  };
}

/** On `globalThis`: a class that another copy of this package has fenced is not fenced again by this one. */
const CLASSES = Symbol.for('prisma-extension-fenced-lock.classes');
const slots = globalThis as { [CLASSES]?: number };

/** How many classes of adapters have been fenced: a transaction that began when there were fewer may not be. */
export const fencedClasses = (): number => slots[CLASSES] ?? 0;

/**
 * The same for a client that had connected before the extension was applied: from now on the class of its adapter does it
 * when a lock begins a transaction. Nothing is done for an adapter without a pool of pg.
 */
export async function fenceConnected(factory: AdapterFactory): Promise<void> {
  // It opens no connection before its first query. It is not disposed of: a pool of the caller's would end by that.
  const adapter = (await factory.connect()) as ClientAdapter;
  const type = Object.getPrototypeOf(adapter) as Partial<ClientAdapter> & { [FENCED]?: true };
  const start = type.startTransaction;
  if (type[FENCED] || start === undefined || !isPool(adapter.underlyingDriver?.())) return;
  Object.defineProperty(type, FENCED, { value: true });
  type.startTransaction = async function (this: ClientAdapter, isolationLevel) {
    if (openTicket()) fenceDriver(this);
    return await start.call(this, isolationLevel);
  };
  slots[CLASSES] = fencedClasses() + 1;
}

/** Whether the adapter has a pool of pg, which is fenced then. */
function fenceDriver(adapter: ClientAdapter): boolean {
  const driver = adapter.underlyingDriver?.();
  if (!isPool(driver)) return false;
  fencePool(driver, () => heldKey() !== undefined);
  return true;
}

function isPool(driver: unknown): driver is PgPool {
  const { connect, Client, waitingCount } = (driver ?? {}) as Partial<PgPool>;
  return typeof connect === 'function' && typeof Client?.Query === 'function' && typeof waitingCount === 'number';
}

function fenceAdapter(adapter: ClientAdapter): void {
  // A factory may connect the same one each time. Its class says nothing of it.
  if (Object.hasOwn(adapter, FENCED)) return;
  Object.defineProperty(adapter, FENCED, { value: true });
  for (const verb of ['queryRaw', 'executeRaw'] as const) {
    const send = adapter[verb];
    adapter[verb] = async function (this: ClientAdapter, query) {
      const refusal = refusalOfWrite();
      if (refusal) throw refusal;
      return await send.call(this, query);
    };
  }
  const start = adapter.startTransaction;
  adapter.startTransaction = async function (this: ClientAdapter, isolationLevel) {
    const ticket = openTicket();
    if (ticket === undefined) return await start.call(this, isolationLevel);
    return ticket.takeOther(await start.call(this, isolationLevel));
  };
}
