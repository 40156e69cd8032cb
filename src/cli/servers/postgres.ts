import type pg from 'pg';
import type { Context } from '../context.js';
import { codeOf, messageOf, Problem } from '../problem.js';
import { PUSHED } from '../project/remedies.js';
import { FORMS, isLoginRefused, remedyFor } from './remedy.js';
import { refuseMalformed } from './urls.js';

/** What the commands need of a database. */
export interface PostgresServer {
  /** `user@host:port/database`, for messages. */
  readonly shown: string;
  /** The same without the user. */
  readonly place: string;
  /** The Postgres schema of models that name none. */
  readonly schema: string;
  /** Runs one statement in its own transaction. */
  readonly query: ServerQuery;
  /** Runs several statements in one transaction. Its settings end with it, also behind a pooler. */
  transaction<T>(begin: string, work: (query: ServerQuery) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export type ServerQuery = <Row extends object>(sql: string, values?: readonly unknown[]) => Promise<Row[]>;

const CONNECT_WITHIN = 10_000;

/**
 * The user of the command often owns everything, and functions or operators that another role has created in `public`
 * must not run with these rights. So names are looked up in the catalog only. Set for the transaction, because a pooler
 * gives the session to the application afterwards.
 */
const CATALOG_ALONE = `SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`;

/** Where this URL leads, without connecting. @throws Problem if it cannot be read. */
export async function postgresPlace(context: Context, url: string): Promise<string> {
  return placeOf(await clientFor(context, url));
}

/** The same with the user, as in messages. @throws Problem if it cannot be read. */
export async function postgresLogin(context: Context, url: string): Promise<string> {
  return loginOf(await clientFor(context, url));
}

/** A client that has not connected. */
async function clientFor(context: Context, url: string): Promise<pg.Client> {
  context.hide(url);
  refuseMalformed(url, 'database');
  if (!/^postgres(ql)?:\/\//.test(url)) {
    const served = /^prisma(\+postgres)?:/.test(url) ? ' What Prisma Accelerate serves cannot be used.' : '';
    throw new Problem(`The database URL must begin with postgresql://, and lead to PostgreSQL itself.${served}`, {
      remedy: `Write it as ${FORMS.database}.`,
    });
  }
  const { Client } = await driver();
  try {
    return new Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_WITHIN,
      application_name: 'fenced-lock',
    });
  } catch {
    // The message of pg contains the URL.
    throw new Problem('The database URL cannot be read: check that special characters in it are percent-encoded.');
  }
}

function placeOf({ host, port, database }: pg.Client): string {
  return `${host}:${port}/${database}`;
}

function loginOf(client: pg.Client): string {
  return `${client.user}@${placeOf(client)}`;
}

/** @throws Problem if the database cannot be reached. */
export async function connectPostgres(context: Context, url: string): Promise<PostgresServer> {
  const client = await clientFor(context, url);
  const place = placeOf(client);
  const shown = loginOf(client);
  // The next query reports a broken connection.
  client.on('error', () => {});
  await client.connect().catch((error: unknown) => {
    const reason = messageOf(error) || codeOf(error);
    // Only an error that the server sent has a severity.
    const answered =
      (error as { severity?: unknown }).severity === undefined ? 'cannot be reached' : 'refuses the connection';
    const what = isLoginRefused(error) ? 'refuses the login' : answered;
    throw new Problem(`PostgreSQL at ${shown} ${what}: ${reason}.`, { cause: error, remedy: remedyFor(error) });
  });
  const query: ServerQuery = async <Row extends object>(sql: string, values: readonly unknown[] = []) =>
    (await client.query<Row>(sql, [...values])).rows;
  const transaction: PostgresServer['transaction'] = async (begin, work) => {
    await query(begin);
    try {
      await query(CATALOG_ALONE);
      const result = await work(query);
      await query('COMMIT');
      return result;
    } catch (error) {
      await query('ROLLBACK').catch(() => {});
      throw error;
    }
  };
  return {
    shown,
    place,
    // Like Prisma, which uses the URL and not the role's search_path.
    schema: new URL(url).searchParams.get('schema') ?? 'public',
    query: (sql, values) => transaction('BEGIN', (query) => query(sql, values)),
    transaction,
    close: () => client.end().catch(() => {}),
  };
}

export function notInstalled({ shown }: PostgresServer): Problem {
  return new Problem(
    `${shown} has no schema fenced_lock: npx prisma migrate deploy, after npx fenced-lock init if no migration makes it yet; ` +
      `or with prisma db push ${PUSHED}.`,
  );
}

/** Loaded only by commands that connect to Postgres: the package works without pg. */
async function driver(): Promise<typeof pg> {
  try {
    return (await import('pg')).default;
  } catch (cause) {
    throw new Problem('This command needs the driver of PostgreSQL.', { cause, remedy: 'Install it: npm install pg.' });
  }
}
