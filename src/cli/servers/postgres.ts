import type pg from 'pg';
import type { Context } from '../context.js';
import { codeOf, messageOf, Problem } from '../problem.js';
import { PUSHED } from '../project/remedies.js';
import { visible } from '../visible.js';
import { FORMS, isLoginRefused, remedyFor } from './remedy.js';
import { DATABASE_URL, type DatabaseOptions, databaseUrl, refuseMalformed, shownPlace } from './urls.js';

/** What the commands need of a database. */
export interface PostgresServer {
  readonly pool: pg.Pool;
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

type ServerQuery = <Row extends object>(sql: string, values?: readonly unknown[]) => Promise<Row[]>;

const CONNECT_WITHIN = 10_000;
/** How long an answer may take where the command goes on for ever: a machine that was cut off tells nobody; milliseconds. */
const ANSWERS_WITHIN = 10_000;

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
    return new Client({ connectionString: url });
  } catch {
    // The message of pg contains the URL.
    throw new Problem('The database URL cannot be read: check that special characters in it are percent-encoded.');
  }
}

const placeOf = ({ host, port, database }: pg.Client) => `${host}:${port}/${database}`;
const loginOf = (client: pg.Client) => `${client.user}@${placeOf(client)}`;

/** @param lasting whether the command goes on for ever. @throws Problem if the database cannot be reached. */
export async function connectPostgres(context: Context, url: string, lasting = false): Promise<PostgresServer> {
  const client = await clientFor(context, url);
  const shown = loginOf(client);
  const pool = new (await driver()).Pool({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_WITHIN,
    application_name: 'fenced-lock',
    max: 3,
    ...(lasting && { query_timeout: ANSWERS_WITHIN }),
  });
  // The next query reports a broken connection.
  pool.on('error', () => {});
  pool.on('connect', (session) => session.on('error', () => {}));
  await pool.connect().then(
    (session) => session.release(),
    (error: unknown) => {
      const reason = messageOf(error) || codeOf(error);
      // Only an error that the server sent has a severity.
      const answered =
        (error as { severity?: unknown }).severity === undefined ? 'cannot be reached' : 'refuses the connection';
      const what = isLoginRefused(error) ? 'refuses the login' : answered;
      throw new Problem(`PostgreSQL at ${shown} ${what}: ${reason}.`, { cause: error, remedy: remedyFor(error) });
    },
  );
  const transaction: PostgresServer['transaction'] = async (begin, work) => {
    const session = await pool.connect();
    const query: ServerQuery = async <Row extends object>(sql: string, values: readonly unknown[] = []) =>
      (await session.query<Row>(sql, [...values])).rows;
    let isOver = false;
    try {
      await query(begin);
      await query(CATALOG_ALONE);
      const result = await work(query);
      await query('COMMIT');
      isOver = true;
      return result;
    } catch (error) {
      isOver = await query('ROLLBACK').then(
        () => true,
        () => false,
      );
      throw error;
    } finally {
      session.release(!isOver);
    }
  };
  return {
    pool,
    shown,
    place: placeOf(client),
    // Like Prisma, which uses the URL and not the role's search_path.
    schema: new URL(url).searchParams.get('schema') ?? 'public',
    query: (sql, values) => transaction('BEGIN', (query) => query(sql, values)),
    transaction,
    close: () => pool.end().catch(() => {}),
  };
}

/** Connects, says which database it is, runs `work`, and closes the connection. */
export async function withDatabase<T>(
  context: Context,
  options: DatabaseOptions,
  work: (database: PostgresServer) => Promise<T>,
): Promise<T> {
  const { url, place } = await databaseUrl(context, options);
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

/** A refusal of the database as a Problem, if it is one. */
export function refused(error: unknown, { shown }: Pick<PostgresServer, 'shown'>): unknown {
  switch (codeOf(error)) {
    case '3F000':
    case '42P01':
      return new Problem(
        `${shown} has no schema fenced_lock: npx prisma migrate deploy, after npx fenced-lock init if no migration makes it ` +
          `yet; or with prisma db push ${PUSHED}.`,
      );
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

/** Loaded only by commands that connect to Postgres: the package works without pg. */
async function driver(): Promise<typeof pg> {
  try {
    return (await import('pg')).default;
  } catch (cause) {
    throw new Problem('This command needs the driver of PostgreSQL.', { cause, remedy: 'Install it: npm install pg.' });
  }
}
