import { InvalidOptionError } from '../base/errors.js';
import type { AdapterFactory, PrismaInternals } from './internals.js';

/** Refuses a client that cannot hold locks. @throws InvalidOptionError */
export function checkClient(client: PrismaInternals): AdapterFactory {
  if (client._activeProvider !== 'postgresql') {
    throw new InvalidOptionError(
      'datasource',
      `must be PostgreSQL, and this client's is ${client._activeProvider}. Use the lock with a PostgreSQL client.`,
    );
  }
  const adapter = client._engineConfig.adapter;
  if (adapter === undefined) {
    throw new InvalidOptionError(
      'adapter',
      'must be a driver adapter such as PrismaPg; Accelerate cannot hold a lock.',
    );
  }
  if (client._runtimeDataModel === undefined) {
    throw new InvalidOptionError('client', 'must be a client of Prisma 7. Other versions have other internals.');
  }
  if (hasOneSession(adapter) && process.env['NODE_ENV'] === 'production') {
    throw new InvalidOptionError(
      'adapter',
      'is one of PGlite, which has a single session: for tests and for trying out, and refused where NODE_ENV is ' +
        'production. Use PrismaPg on a PostgreSQL server.',
    );
  }
  const { config } = adapter as { config?: { query_timeout?: unknown; connectionString?: unknown } };
  if (config?.query_timeout || /[?&]query_timeout=/.test(String(config?.connectionString))) {
    throw new InvalidOptionError(
      'query_timeout',
      'of the pg pool must not be set: it drops a queued ROLLBACK and returns the connection to the pool inside the open ' +
        'transaction, which the next caller then commits. Use statement_timeout, or the `timeout` of the lock.',
    );
  }
  return adapter;
}

/** Whether these are clients on the same adapter, as all that `$extends` makes of one client are. */
export function shareAdapter(one: object, other: object): boolean {
  const adapter = adapterOf(one);
  return adapter !== undefined && adapter === adapterOf(other);
}

/** `undefined` for what is no client of Prisma: a strict mock throws if it is asked for a property that it does not have. */
function adapterOf(client: object): AdapterFactory | undefined {
  return '_engineConfig' in client ? (client as PrismaInternals)._engineConfig.adapter : undefined;
}

/** Whether all connections of this adapter are one and the same session, as those of PGlite are. */
export function hasOneSession(adapter: Pick<AdapterFactory, 'adapterName'>): boolean {
  return /pglite/i.test(adapter.adapterName);
}

/** The isolation level that the transactions of this client have by default; `undefined` for that of the database. */
export function isolationLevelOf({ _engineConfig }: PrismaInternals): string | undefined {
  return _engineConfig.transactionOptions?.isolationLevel;
}
