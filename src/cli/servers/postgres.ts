import type pg from 'pg';
import type { Context } from '../context.js';
import { identifier } from '../migrations/identifiers.js';
import { codeOf, messageOf, Problem } from '../problem.js';
import { PUSHED } from '../project/remedies.js';
import { FORMS, remedyFor } from './remedy.js';
import { refuseMalformed } from './urls.js';

/** A database as its URL names it, not connected. */
export interface PostgresPlace {
  /** `user@host:port/database`, for messages. */
  readonly shown: string;
  /** The same without the user. */
  readonly place: string;
  /** @param lasting whether the command goes on for ever. @throws Problem if the database cannot be reached. */
  connect(lasting?: boolean): Promise<PostgresServer>;
}

/** What the commands need of a database. */
export interface PostgresServer extends Pick<PostgresPlace, 'shown'> {
  readonly pool: pg.Pool;
  /** The Postgres schema of models that name none. */
  readonly schema: string;
  /** Runs one statement in its own transaction. */
  readonly query: ServerQuery;
  /** Runs several statements in one transaction. Its settings end with it, also behind a pooler. */
  transaction<T>(begin: string, work: (query: ServerQuery) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

type ServerQuery = <Row extends object>(sql: string, values?: readonly unknown[]) => Promise<Row[]>;

/** A machine that was cut off tells nobody; milliseconds. */
const WITHIN = 10_000;

/**
 * The user of the command often owns everything, and functions or operators that another role has created in `public`
 * must not run with these rights. So names are looked up in the catalog only. Set for the transaction, because a pooler
 * gives the session to the application afterwards.
 */
const CATALOG_ALONE = `SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`;

/** @throws Problem if the URL cannot be read */
export async function postgresAt(context: Context, url: string): Promise<PostgresPlace> {
  context.hide(url);
  refuseMalformed(url, 'database');
  if (!/^postgres(ql)?:\/\//.test(url)) {
    const served = /^prisma(\+postgres)?:/.test(url) ? ' What Prisma Accelerate serves cannot be used.' : '';
    throw new Problem(`The database URL must begin with postgresql://, and lead to PostgreSQL itself.${served}`, {
      remedy: `Write it as ${FORMS.database}.`,
    });
  }
  const driver = await driverOf();
  let client: pg.Client;
  try {
    client = new driver.Client({ connectionString: url });
  } catch {
    // The message of pg contains the URL.
    throw new Problem('The database URL cannot be read: check that special characters in it are percent-encoded.');
  }
  const place = `${client.host}:${client.port}/${client.database}`;
  const shown = `${client.user}@${place}`;
  return { shown, place, connect: (lasting = false) => connect(driver, url, shown, lasting) };
}

async function connect(driver: typeof pg, url: string, shown: string, lasting: boolean): Promise<PostgresServer> {
  const pool = new driver.Pool({
    connectionString: url,
    connectionTimeoutMillis: WITHIN,
    application_name: 'fenced-lock',
    max: 3,
    ...(lasting && { query_timeout: WITHIN }),
  });
  // The next query reports a broken connection.
  pool.on('error', () => {});
  pool.on('connect', (session) => session.on('error', () => {}));
  await pool.connect().then(
    (session) => session.release(),
    (error: unknown) => {
      const reason = messageOf(error) || codeOf(error);
      throw new Problem(`PostgreSQL at ${shown} cannot be reached: ${reason}.`, {
        cause: error,
        remedy: remedyFor(error),
      });
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
    // Like Prisma, which uses the URL and not the role's search_path.
    schema: new URL(url).searchParams.get('schema') ?? 'public',
    query: (sql, values) => transaction('BEGIN', (query) => query(sql, values)),
    transaction,
    close: () => pool.end().catch(() => {}),
  };
}

/** Connects, runs `work`, and closes the connection. @throws Problem in place of what the database refuses */
export async function withPostgres<T>(
  context: Context,
  url: string,
  work: (database: PostgresServer) => Promise<T>,
): Promise<T> {
  const database = await (await postgresAt(context, url)).connect();
  try {
    return await work(database).catch((error: unknown) => {
      throw refused(error, database);
    });
  } finally {
    await database.close();
  }
}

const NO_SCHEMA =
  'has no schema fenced_lock: npx prisma migrate deploy, after npx fenced-lock init if no migration makes it yet; or with ' +
  `prisma db push ${PUSHED}`;
const REFUSALS: Readonly<Record<string, string>> = {
  '3F000': NO_SCHEMA,
  '42P01': NO_SCHEMA,
  '42883': 'lacks objects of fenced_lock: npx fenced-lock doctor says which',
  '42501':
    'does not let this role use the schema fenced_lock or an object in it: npx fenced-lock doctor says which one',
  '25006':
    'is read-only: connect to the primary, or, if it is the primary, see who has set default_transaction_read_only',
};

/** A refusal of the database as a Problem, if it is one. */
export function refused(error: unknown, { shown }: Pick<PostgresServer, 'shown'>): unknown {
  const what = REFUSALS[codeOf(error) ?? ''];
  return what === undefined ? error : new Problem(`${shown} ${what}.`, { cause: error });
}

/** Migrations that began and neither finished nor were rolled back; `undefined` if there is no history of Prisma. */
export async function failedMigrations(database: PostgresServer): Promise<string[] | undefined> {
  const sql = `SELECT migration_name AS name FROM ${identifier(database.schema)}._prisma_migrations
    WHERE finished_at IS NULL AND rolled_back_at IS NULL ORDER BY started_at`;
  try {
    return (await database.query<{ name: string }>(sql)).map(({ name }) => name);
  } catch (error) {
    if (codeOf(error) === '42P01') return undefined;
    throw error;
  }
}

/** What to do about migrations that have failed. */
export function resolve(failed: readonly string[]): string {
  const rolledBack = failed.map((name) => `npx prisma migrate resolve --rolled-back ${name}`);
  return `${rolledBack.join(', ')}, then npx prisma migrate deploy`;
}

/** Loaded only by commands that connect to Postgres: the package works without pg. */
async function driverOf(): Promise<typeof pg> {
  try {
    return (await import('pg')).default;
  } catch (cause) {
    throw new Problem('This command needs the driver of PostgreSQL.', { cause, remedy: 'Install it: npm install pg.' });
  }
}
