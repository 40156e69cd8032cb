import { assembleLocks, storeOf } from '../../assemble.js';
import { LockTimeoutError, LockUnavailableError, NotInstalledError } from '../../base/errors.js';
import { makeObservable } from '../../call/observed.js';
import { type Taken, TOKEN_RAISED, take } from '../../call/operators.js';
import { lockClient } from '../../client.js';
import type { PgPool } from '../../connection/pg.js';
import { plainly, poolDatabase, queryOver } from '../../connection/pool-database.js';
import { Fencing } from '../../fencing/fencing.js';
import { DEFAULTS, type RedisLike } from '../../options/options.js';
import { resolveOptions } from '../../options/resolve.js';
import type { LeaseStore } from '../../waiting/store.js';
import type { Asked, Context } from '../context.js';
import { messageOf, Problem } from '../problem.js';
import { visible } from '../visible.js';
import { PostgresServer, refused } from './postgres.js';
import { connectRedis, RedisServer, WITHIN } from './redis.js';
import { remedyFor, saidByRedis } from './remedy.js';
import { type ServerOptions, urlOf } from './urls.js';

/**
 * The operators of the client, over connections of the command's own, which the board can observe. They reject with a Problem if a
 * server refuses.
 */
export interface Locks extends Omit<ReturnType<typeof lockClient>['methods']['$locks'], 'close'> {
  /** As `forceRelease`, and says what was done. */
  take(key: string): Promise<Taken | undefined>;
  close(): Promise<void>;
}

/** Both servers, as the URLs name them. */
export interface Servers {
  readonly asked: Required<Asked>;
  readonly postgres: PostgresServer;
  readonly redis: readonly RedisServer[];
}

function optionsOf(redis: readonly RedisServer['client'][], keyPrefix: string, wake: 'pubsub' | 'poll' = 'pubsub') {
  return resolveOptions({ redis: redis as unknown as RedisLike[], keyPrefix, wake, commandTimeout: WITHIN });
}

/** The store of one server as the application has it, with its errors. */
export function storeOver(redis: RedisServer['client'], keyPrefix: string, wake?: 'pubsub' | 'poll'): LeaseStore {
  return storeOf(optionsOf([redis], keyPrefix, wake), () => {});
}

/** Finds both servers, without connecting to them. @param lasting whether connections that are lost are made again. @throws Problem for a URL that is missing or cannot be read. */
export async function findServers(context: Context, options: ServerOptions, lasting = false): Promise<Servers> {
  const database = await urlOf(context, options, 'database');
  const nodes = await urlOf(context, options, 'Redis');
  const postgres = await PostgresServer.at(context, database.urls[0], lasting);
  const redis = await Promise.all(nodes.urls.map((url) => RedisServer.at(context, url, lasting)));
  const asked = {
    postgres: { address: visible(postgres.place), from: database.from },
    redis: { address: redis.map(({ shown }) => visible(shown)).join(', '), from: nodes.from },
  };
  return { asked, postgres, redis };
}

/** Connects to both servers. @throws Problem */
export async function openLocks(
  context: Context,
  { postgres: server, redis }: Servers,
  keyPrefix: string = DEFAULTS.keyPrefix,
): Promise<Locks> {
  await connectRedis(context, redis);
  const close = () => Promise.all([server.close(), ...redis.map((node) => node.close())]);
  await server.connect().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  const clients = redis.map(({ client }) => client);
  const resolved = optionsOf(clients, keyPrefix);
  const query = queryOver(server.pool);
  const pool = server.pool as unknown as PgPool;
  const database = poolDatabase(pool, query, plainly(pool));
  const { observed, ...ports } = assembleLocks(resolved, query);
  const resolve = () => resolved.defaults;
  const { parts, methods } = lockClient(resolved, {
    ...ports,
    fencing: new Fencing('fence', new Set(), new Map()),
    database,
    calledOn: (client) => ({ client: client as object, database }),
    resolve,
    close: () => {},
    disconnect: async () => void (await close()),
  });
  const { inspect, list, history, forceRelease } = methods.$locks;
  const told =
    <Args extends unknown[], T>(ask: (...args: Args) => Promise<T>) =>
    (...args: Args) =>
      ask(...args).catch((error: unknown) => {
        throw explained(error, server, redis);
      });
  const locks: Locks = {
    inspect: told(inspect),
    list: told(list),
    history: told(history),
    forceRelease: told(forceRelease),
    take: told((key) => take(parts, ports.store, database, key, resolve())),
    close: () => methods.$disconnect(),
  };
  makeObservable(locks, { ...observed, look: told(observed.look) });
  return locks;
}

/** Connects to both servers, says which they are, runs `work`, and closes all connections. */
export async function withLocks<T>(
  context: Context,
  options: ServerOptions,
  work: (locks: Locks, asked: Required<Asked>) => Promise<T>,
): Promise<T> {
  const places = await findServers(context, options);
  const locks = await openLocks(context, places, options.keyPrefix);
  try {
    context.asks(places.asked);
    return await work(locks, places.asked);
  } finally {
    await locks.close();
  }
}

/** An error of an operator in the words of the command: which server it was, and what to do there. */
function explained(error: unknown, database: PostgresServer, redis: readonly RedisServer[]): unknown {
  if (error instanceof NotInstalledError) return refused(error.cause, database);
  if (error instanceof LockTimeoutError) {
    return new Problem(
      `The key ${visible(error.key ?? '')} could not be locked in time: transactions keep its row in ${database.shown}.`,
      { cause: error, remedy: KEPT },
    );
  }
  if (!(error instanceof LockUnavailableError)) return error;
  const { cause, server } = error;
  if (server === 'Postgres') {
    const refusal = refused(cause, database);
    if (refusal instanceof Problem) return refusal;
    return new Problem(`PostgreSQL at ${database.shown}: ${messageOf(cause)}.`, { cause, remedy: remedyFor(cause) });
  }
  const done = error.message.includes(TOKEN_RAISED) ? ` ${TOKEN_RAISED}. Then run it again.` : '';
  const places = redis.map(({ shown }) => shown).join(', ');
  return new Problem(`Redis at ${places}: ${saidByRedis(cause)}.${done}`, { cause, remedy: remedyFor(cause) });
}

const KEPT =
  "If this role may not end them, give the URL of the application's role, or of one that is a member of it, or of " +
  'pg_signal_backend and pg_read_all_stats. If they are in pg_prepared_xacts, only ROLLBACK PREPARED ends them. Then run it again.';
