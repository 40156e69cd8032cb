import { type AdapterTransaction, queryOf, rowsOf } from '../connection/adapter-connection.js';
import { type OwnConnection, ownSettings } from '../connection/rescue.js';
import type { AdapterFactory } from './internals.js';

interface RescueAdapter extends Pick<AdapterTransaction, 'queryRaw'> {
  dispose(): Promise<void>;
}

/** Opens a connection by a factory of the rescue connection. */
export function connectionsOf(factory: AdapterFactory): () => Promise<OwnConnection> {
  return async () => {
    const adapter = (await factory.connect()) as RescueAdapter;
    return {
      query: async (text, values) => rowsOf(await adapter.queryRaw(queryOf(text, values))),
      close: () => adapter.dispose(),
    };
  };
}

/**
 * Makes the default factory for the rescue connection: the client's own factory with a separate pool. A `PrismaPg` that
 * was given a pool would use that same pool.
 */
export function rescueFactory(factory: AdapterFactory): AdapterFactory {
  const { config, options } = factory as { config?: object; options?: unknown };
  if (config === undefined) return factory;
  const make = factory.constructor as new (config: object, options: unknown) => AdapterFactory;
  return new make(ownSettings(config), options);
}
