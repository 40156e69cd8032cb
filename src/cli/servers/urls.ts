import type { Context } from '../context.js';
import { advised, Problem } from '../problem.js';
import { readConfig } from '../project/config.js';
import type { ProjectOptions } from '../project/locate.js';
import { FORMS } from './remedy.js';

export interface DatabaseOptions extends ProjectOptions {
  readonly databaseUrl?: string;
}

export interface ServerOptions extends DatabaseOptions {
  /** Several URLs mean independent nodes. */
  readonly redisUrl?: readonly string[];
  readonly keyPrefix?: string;
}

/** A server's URL, or those of several nodes, and where they were found. */
export interface Found {
  readonly urls: readonly [string, ...string[]];
  readonly from: string;
}

const SERVERS = {
  database: {
    option: '--database-url',
    variable: 'DATABASE_URL',
    missing: 'Which database? Set DATABASE_URL, as in the .env that the Prisma config loads, or give --database-url.',
    // Whoever has no URL yet has either not looked for it, or not had it loaded.
    remedy:
      `It is ${FORMS.database}: your provider of PostgreSQL shows it as the connection string. A .env is read only if the ` +
      "Prisma config begins with import 'dotenv/config'.",
  },
  Redis: {
    option: '--redis-url',
    variable: 'REDIS_URL',
    missing:
      'Which Redis? Set REDIS_URL (redis://<host>:<port>), as in the .env that the Prisma config loads, or give --redis-url.',
    remedy: undefined,
  },
} as const;

/**
 * Each URL is the first of: its option, its variable as the command was started with, what the Prisma config gives.
 * The config is run for the sake of either URL, and neither depends on whether the other one was given.
 *
 * @throws Problem if there is none
 */
export async function urlOf(context: Context, options: ServerOptions, server: keyof typeof SERVERS): Promise<Found> {
  const { option, variable, missing, remedy } = SERVERS[server];
  const [given, ...others] = server === 'database' ? [options.databaseUrl] : (options.redisUrl ?? []);
  if (given !== undefined) return { urls: [given, ...others.map(String)], from: option };
  const set = context.givenEnv[variable];
  if (set) return { urls: [set], from: `${variable} in the environment` };
  const config = await readConfig(context, options.config).catch((error: unknown) => {
    throw error instanceof Problem ? new Problem(`${missing} ${advised(error)}`, { cause: error }) : error;
  });
  const url = (server === 'database' && config?.datasource?.url) || context.env[variable];
  if (!url) throw new Problem(missing, { remedy });
  context.uses({ config: config?.file ?? null });
  return { urls: [url], from: 'the Prisma config' };
}

/** @throws Problem that names what is wrong with a URL as a whole, without a part of it */
export function refuseMalformed(url: string, whose: keyof typeof SERVERS): void {
  const isTwo = /:\/\/.*:\/\//s.test(url);
  if (!isTwo && !/^["'`]|["'`]$/.test(url)) return;
  const malformation = isTwo ? 'it has a second URL in it' : 'it begins or ends with a quotation mark';
  throw new Problem(`The ${whose} URL is malformed: ${malformation}.`, {
    remedy: 'If it comes from a .env, give each variable a line of its own there.',
  });
}
