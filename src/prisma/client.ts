import { ensure } from '../base/checks.js';
import { InvalidOptionError } from '../base/errors.js';
import { refuseQueryTimeout } from '../connection/pool.js';
import type { AdapterFactory, PrismaInternals } from './internals.js';

/** Refuses a client that cannot hold locks. @throws InvalidOptionError */
export function checkClient(client: PrismaInternals): AdapterFactory {
  const { _activeProvider: provider, _engineConfig } = client;
  const datasource = `must be PostgreSQL, and this client's is ${provider}. Use the lock with a PostgreSQL client.`;
  ensure(provider === 'postgresql', 'datasource', datasource);
  const { adapter } = _engineConfig;
  if (adapter === undefined) {
    throw new InvalidOptionError(
      'adapter',
      'must be a driver adapter such as PrismaPg; Accelerate cannot hold a lock.',
    );
  }
  const isOfPrisma7 = client._runtimeDataModel !== undefined;
  ensure(isOfPrisma7, 'client', 'must be a client of Prisma 7. Other versions have other internals.');
  ensure(
    !hasOneSession(adapter) || process.env['NODE_ENV'] !== 'production',
    'adapter',
    'is one of PGlite, which has a single session: for tests and for trying out, and refused where NODE_ENV is ' +
      'production. Use PrismaPg on a PostgreSQL server.',
  );
  refuseQueryTimeout((adapter as { config?: object }).config);
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
