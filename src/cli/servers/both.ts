import { DEFAULTS } from '../../options/options.js';
import type { Asked, Context } from '../context.js';
import { codeOf, Problem } from '../problem.js';
import { visible } from '../visible.js';
import { connectNodes } from './independent.js';
import { connectPostgres, notInstalled, type PostgresServer, postgresPlace } from './postgres.js';
import { checkKeepsLocks, connectRedis, lossOf, redisPlace } from './redis.js';
import type { Locks, RedisServers } from './redis-server.js';
import {
  DATABASE_URL,
  type DatabaseOptions,
  foundDatabaseUrl,
  foundRedisUrls,
  type Place,
  REDIS_URL,
  type RedisOptions,
  shownPlace,
} from './urls.js';

export interface ServerOptions extends DatabaseOptions, RedisOptions {
  readonly keyPrefix?: string;
}

/** Both servers. */
export interface Servers {
  readonly database: PostgresServer;
  readonly locks: Locks;
  /** Opens another connection to the same database. */
  aside(): Promise<PostgresServer>;
  /** Which servers these are, for people. */
  readonly asked: Required<Asked>;
}

/** Connects to both servers, runs `work`, and closes all connections. */
export async function withServers<T>(
  context: Context,
  options: ServerOptions,
  work: (servers: Servers) => Promise<T>,
): Promise<T> {
  const { url, place } = await foundDatabaseUrl(context, options);
  const found = await foundRedisUrls(context, options);
  const redis = await connect(context, found.urls);
  const databases: PostgresServer[] = [];
  const another = async () => {
    const database = await connectPostgres(context, url);
    databases.push(database);
    return database;
  };
  try {
    const database = await another();
    const locks = redis.locks(options.keyPrefix ?? DEFAULTS.keyPrefix);
    const asked = askedOf({ at: database.place, place }, { at: redis.places, place: found.place });
    return await work({ database, locks, aside: another, asked }).catch((error: unknown) => {
      throw refused(error, database);
    });
  } finally {
    redis.close();
    await Promise.all(databases.map((database) => database.close()));
  }
}

/** Which servers will be asked, without connecting to them. @throws Problem for a URL that is missing or cannot be read. */
export async function toBeAsked(context: Context, options: ServerOptions): Promise<Required<Asked>> {
  const { url, place } = await foundDatabaseUrl(context, options);
  const found = await foundRedisUrls(context, options);
  const nodes = await Promise.all(found.urls.map((each) => redisPlace(context, each)));
  return askedOf({ at: await postgresPlace(context, url), place }, { at: nodes, place: found.place });
}

/** As `withServers`, with Postgres alone, which is reported. */
export async function withDatabase<T>(
  context: Context,
  options: DatabaseOptions,
  work: (database: PostgresServer) => Promise<T>,
): Promise<T> {
  const { url, place } = await foundDatabaseUrl(context, options);
  const database = await connectPostgres(context, url);
  const from = shownPlace(place, DATABASE_URL);
  context.asks({ postgres: { address: visible(database.place), from }, saysFrom: false });
  try {
    return await work(database).catch((error: unknown) => {
      throw refused(error, database);
    });
  } finally {
    await database.close();
  }
}

/** Which servers these are, and where their URLs were found. */
function askedOf(
  postgres: { readonly at: string; readonly place: Place },
  redis: { readonly at: readonly string[]; readonly place: Place },
): Required<Asked> {
  return {
    postgres: { address: visible(postgres.at), from: shownPlace(postgres.place, DATABASE_URL) },
    redis: { address: redis.at.map(visible).join(', '), from: shownPlace(redis.place, REDIS_URL) },
    // An address alone is enough where both are from one place.
    saysFrom: postgres.place !== redis.place,
  };
}

/** @throws Problem */
export async function connect(
  context: Context,
  [url, ...others]: readonly [string, ...string[]],
): Promise<RedisServers> {
  if (others.length > 0) return await connectNodes(context, [url, ...others]);
  const redis = await connectRedis(context, url);
  try {
    checkKeepsLocks(redis);
    const { shown: address, place, mode, locks, close } = redis;
    const role = mode === 'cluster' ? 'node of a Cluster' : 'server';
    return {
      places: [place],
      locks,
      close,
      get servers() {
        return [{ address, role, failure: lossOf(redis) }];
      },
    };
  } catch (error) {
    redis.close();
    throw error;
  }
}

/** A refusal of the database as a Problem, if it is one. */
export function refused(error: unknown, database: PostgresServer): unknown {
  const { shown } = database;
  switch (codeOf(error)) {
    case '3F000':
      return notInstalled(database);
    case '42883':
      return new Problem(`${shown} lacks objects of fenced_lock: npx fenced-lock doctor says which.`);
    case '42501':
      return new Problem(
        `The role of ${shown} may not use the schema fenced_lock or an object in it: npx fenced-lock doctor says which.`,
      );
    case '25006':
      return new Problem(
        `${shown} is read-only: connect to the primary, or, if it is the primary, see who has set default_transaction_read_only.`,
      );
    default:
      return error;
  }
}
