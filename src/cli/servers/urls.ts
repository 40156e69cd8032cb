import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { configuredUrl, type ProjectOptions } from '../project/locate.js';

export interface DatabaseOptions extends ProjectOptions {
  readonly databaseUrl?: string;
}

/** The first of --database-url, DATABASE_URL, and the Prisma config. @throws Problem if there is none. */
export async function databaseUrl(context: Context, options: DatabaseOptions): Promise<string> {
  const url = options.databaseUrl ?? context.env['DATABASE_URL'] ?? (await configuredUrl(context, options));
  if (url) return url;
  throw new Problem('Which database? Set DATABASE_URL, or give --database-url.');
}

export interface RedisOptions {
  /** Several URLs mean independent nodes. */
  readonly redisUrl?: readonly string[];
}

/** All --redis-url options, else REDIS_URL. @throws Problem if there is none. */
export function redisUrls(context: Context, options: RedisOptions): readonly [string, ...string[]] {
  const [first, ...others] = givenRedisUrls(context, options);
  if (first !== undefined) return [first, ...others];
  throw new Problem('Which Redis? Set REDIS_URL, or give --redis-url.');
}

export function givenRedisUrls(context: Context, { redisUrl }: RedisOptions): readonly string[] {
  return (redisUrl ?? [context.env['REDIS_URL'] ?? '']).filter((url) => url !== '');
}
