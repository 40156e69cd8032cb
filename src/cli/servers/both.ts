import { DEFAULTS } from '../../options/options.js';
import type { Context } from '../context.js';
import { codeOf, Problem } from '../problem.js';
import { connectNodes } from './independent.js';
import { connectPostgres, notInstalled, type PostgresServer } from './postgres.js';
import { checkKeepsLocks, connectRedis, lossOf } from './redis.js';
import type { Locks, RedisServers } from './redis-server.js';
import { type DatabaseOptions, databaseUrl, type RedisOptions, redisUrls } from './urls.js';

export interface ServerOptions extends DatabaseOptions, RedisOptions {
  readonly keyPrefix?: string;
}

/** Both servers. */
export interface Servers {
  readonly database: PostgresServer;
  readonly locks: Locks;
  /** Opens another connection to the same database. */
  aside(): Promise<PostgresServer>;
}

/** Connects to both servers, runs `work`, and closes all connections. */
export async function withServers<T>(
  context: Context,
  options: ServerOptions,
  work: (servers: Servers) => Promise<T>,
): Promise<T> {
  const url = await databaseUrl(context, options);
  const redis = await connect(context, await redisUrls(context, options));
  const databases: PostgresServer[] = [];
  const another = async () => {
    const database = await connectPostgres(context, url);
    databases.push(database);
    return database;
  };
  try {
    const database = await another();
    const locks = redis.locks(options.keyPrefix ?? DEFAULTS.keyPrefix);
    return await work({ database, locks, aside: another }).catch((error: unknown) => {
      throw refused(error, database);
    });
  } finally {
    redis.close();
    await Promise.all(databases.map((database) => database.close()));
  }
}

/** The same with Postgres alone. */
export async function withDatabase<T>(
  context: Context,
  options: DatabaseOptions,
  work: (database: PostgresServer) => Promise<T>,
): Promise<T> {
  const database = await connectPostgres(context, await databaseUrl(context, options));
  try {
    return await work(database).catch((error: unknown) => {
      throw refused(error, database);
    });
  } finally {
    await database.close();
  }
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
    const { shown: address, mode, locks, close } = redis;
    const role = mode === 'cluster' ? 'node of a Cluster' : 'server';
    return {
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
      return new Problem(`${shown} is read-only: connect to the primary.`);
    default:
      return error;
  }
}
