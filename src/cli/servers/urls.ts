import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { configuredUrl, configuredVariable, type ProjectOptions } from '../project/locate.js';
import { FORMS } from './remedy.js';

export interface DatabaseOptions extends ProjectOptions {
  readonly databaseUrl?: string;
}

// Each URL is the first of: its option, its variable as the command was started with, what the Prisma config gives. The
// config is run for the sake of either URL, and neither depends on whether the other one was given.

/** Whoever has no URL yet has either not looked for it, or not had it loaded. */
const FROM_WHERE =
  `It is ${FORMS.database}: your provider of PostgreSQL shows it as the connection string. A .env is read only if the Prisma ` +
  "config begins with import 'dotenv/config'.";

/** Where a URL was found. */
type Place = 'option' | 'environment' | 'config';

/** A place for people, with what the URL is called there. */
export function shownPlace(place: Place, names: { readonly option: string; readonly variable: string }): string {
  if (place === 'option') return names.option;
  return place === 'environment' ? `${names.variable} in the environment` : 'the Prisma config';
}

export const DATABASE_URL = { option: '--database-url', variable: 'DATABASE_URL' };
export const REDIS_URL = { option: '--redis-url', variable: 'REDIS_URL' };

/** What is wrong with a URL as a whole, without a part of it; `undefined` if it looks like one URL. */
function malformationOf(url: string): string | undefined {
  const isTwo = /:\/\/.*:\/\//s.test(url);
  if (!isTwo && !/^["'`]|["'`]$/.test(url)) return undefined;
  return isTwo ? 'it has a second URL in it' : 'it begins or ends with a quotation mark';
}

/** @throws Problem */
export function refuseMalformed(url: string, whose: 'database' | 'Redis'): void {
  const malformation = malformationOf(url);
  if (malformation === undefined) return;
  throw new Problem(`The ${whose} URL is malformed: ${malformation}.`, {
    remedy: 'If it comes from a .env, give each variable a line of its own there.',
  });
}

/** The first of --database-url, DATABASE_URL, and the datasource of the Prisma config. @throws Problem if there is none. */
export async function databaseUrl(
  context: Context,
  options: DatabaseOptions,
): Promise<{ readonly url: string; readonly place: Place }> {
  const ofConfig = async () =>
    (await configuredUrl(context, options)) || (await configuredVariable(context, 'DATABASE_URL', options));
  const place = placeOf(options.databaseUrl, context.givenEnv['DATABASE_URL']);
  const url = options.databaseUrl ?? context.givenEnv['DATABASE_URL'] ?? (await ofConfig());
  if (url) return { url, place };
  throw new Problem(
    'Which database? Set DATABASE_URL, as in the .env that the Prisma config loads, or give --database-url.',
    { remedy: FROM_WHERE },
  );
}

export interface RedisOptions extends ProjectOptions {
  /** Several URLs mean independent nodes. */
  readonly redisUrl?: readonly string[];
}

/** All --redis-url options, else REDIS_URL. @throws Problem if there is none. */
export async function redisUrls(
  context: Context,
  options: RedisOptions,
): Promise<{ readonly urls: readonly string[]; readonly place: Place }> {
  const { urls, reason } = await givenRedisUrls(context, options);
  if (urls.length === 0) throw new Problem(`Which Redis? ${reason}`);
  return { urls, place: placeOf(options.redisUrl, context.givenEnv['REDIS_URL']) };
}

function placeOf(option: unknown, variable: unknown): Place {
  if (option !== undefined) return 'option';
  return variable === undefined ? 'config' : 'environment';
}

/** The same; if there is none, `reason` says what to do. */
export async function givenRedisUrls(
  context: Context,
  options: RedisOptions,
): Promise<{ urls: readonly string[]; reason: string }> {
  const remedy =
    'Set REDIS_URL (redis://<host>:<port>), as in the .env that the Prisma config loads, or give --redis-url.';
  try {
    const urls = options.redisUrl ?? [
      context.givenEnv['REDIS_URL'] ?? (await configuredVariable(context, 'REDIS_URL', options)) ?? '',
    ];
    return { urls: urls.filter((url) => url !== ''), reason: remedy };
  } catch (error) {
    // Locks can be looked at without a project, so a config that cannot be loaded only explains what is missing.
    if (!(error instanceof Problem)) throw error;
    return { urls: [], reason: `${remedy} ${error.message}` };
  }
}
