import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { configuredUrl, type ProjectOptions } from '../project/locate.js';

export interface DatabaseOptions extends ProjectOptions {
  readonly databaseUrl?: string;
}

/** --database-url, DATABASE_URL, or what the Prisma config names, in this order. @throws Problem where there is none */
export async function databaseUrl(context: Context, options: DatabaseOptions): Promise<string> {
  const url = options.databaseUrl ?? context.env['DATABASE_URL'] ?? (await configuredUrl(context, options));
  if (url) return url;
  throw new Problem('Which database? Set DATABASE_URL, or give --database-url.');
}

export interface RedisOptions {
  /** More than one: independent nodes. */
  readonly redisUrl?: readonly string[];
}

/** --redis-url, as often as it was given, or REDIS_URL, in this order. @throws Problem where there is none */
export function redisUrls(context: Context, options: RedisOptions): readonly [string, ...string[]] {
  const [first, ...others] = givenRedisUrls(context, options);
  if (first !== undefined) return [first, ...others];
  throw new Problem('Which Redis? Set REDIS_URL, or give --redis-url.');
}

export function givenRedisUrls(context: Context, { redisUrl }: RedisOptions): readonly string[] {
  return (redisUrl ?? [context.env['REDIS_URL'] ?? '']).filter((url) => url !== '');
}
