import type pg from 'pg';
import type { Context } from '../context.js';
import { identifier } from '../migrations/identifiers.js';
import { codeOf, messageOf, Problem } from '../problem.js';
import { PUSHED } from '../project/remedies.js';
import { FORMS, remedyFor } from './remedy.js';
import { refuseMalformed } from './urls.js';

type ServerQuery = <Row extends object>(sql: string, values?: readonly unknown[]) => Promise<Row[]>;

/** A machine that was cut off tells nobody; milliseconds. */
const WITHIN = 10_000;

/**
 * The user of the command often owns everything, and functions or operators that another role has created in `public`
 * must not run with these rights. So names are looked up in the catalog only. Set for the transaction, because a pooler
 * gives the session to the application afterwards.
 */
const CATALOG_ALONE = `SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`;

/** A database, and what the commands need of it. */
export class PostgresServer {
  readonly pool: pg.Pool;
  /** `host:port/database`, for messages. */
  readonly place: string;
  /** The same with the user. */
  readonly shown: string;
  /** The Postgres schema of models that name none. Like Prisma, by the URL and not by the role's search_path. */
  readonly schema: string;

  private constructor(pool: pg.Pool, { host, port, database, user }: pg.Client, url: string) {
    this.pool = pool;
    this.place = `${host}:${port}/${database}`;
    this.shown = `${user}@${this.place}`;
    this.schema = new URL(url).searchParams.get('schema') ?? 'public';
    // The next query reports a broken connection.
    pool.on('error', () => {});
    pool.on('connect', (session) => session.on('error', () => {}));
  }

  /** Not connected. @param lasting whether the command goes on for ever. @throws Problem if the URL cannot be read */
  static async at(context: Context, url: string, lasting = false): Promise<PostgresServer> {
    context.hide(url);
    refuseMalformed(url, 'database');
    if (!/^postgres(ql)?:\/\//.test(url)) {
      const served = /^prisma(\+postgres)?:/.test(url) ? ' What Prisma Accelerate serves cannot be used.' : '';
      throw new Problem(`The database URL must begin with postgresql://, and lead to PostgreSQL itself.${served}`, {
        remedy: `Write it as ${FORMS.database}.`,
      });
    }
    // Loaded only by commands that connect to Postgres: the package works without pg.
    const { default: driver } = await import('pg').catch((cause: unknown) => {
      throw new Problem('This command needs the driver of PostgreSQL.', {
        cause,
        remedy: 'Install it: npm install pg.',
      });
    });
    const pool = new driver.Pool({
      connectionString: url,
      connectionTimeoutMillis: WITHIN,
      application_name: 'fenced-lock',
      max: 3,
      ...(lasting && { query_timeout: WITHIN }),
    });
    try {
      return new PostgresServer(pool, new driver.Client({ connectionString: url }), url);
    } catch {
      // The message of pg contains the URL.
      throw new Problem('The database URL cannot be read: check that special characters in it are percent-encoded.');
    }
  }

  /** @throws Problem if the database cannot be reached */
  async connect(): Promise<void> {
    const session = await this.pool.connect().catch((cause: unknown) => {
      const reason = messageOf(cause) || codeOf(cause);
      throw new Problem(`PostgreSQL at ${this.shown} cannot be reached: ${reason}.`, {
        cause,
        remedy: remedyFor(cause),
      });
    });
    session.release();
  }

  /** Runs one statement in its own transaction. */
  readonly query: ServerQuery = (sql, values) => this.transaction('BEGIN', (query) => query(sql, values));

  /** Runs several statements in one transaction. Its settings end with it, also behind a pooler. */
  async transaction<T>(begin: string, work: (query: ServerQuery) => Promise<T>): Promise<T> {
    const session = await this.pool.connect();
    const query: ServerQuery = async <Row extends object>(sql: string, values: readonly unknown[] = []) =>
      (await session.query<Row>(sql, [...values])).rows;
    try {
      await query(begin);
      await query(CATALOG_ALONE);
      const result = await work(query);
      await query('COMMIT');
      session.release();
      return result;
    } catch (error) {
      await query('ROLLBACK').then(
        () => session.release(),
        () => session.release(true),
      );
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.pool.end().catch(() => {});
  }
}

/** Connects, runs `work`, and closes the connection. @throws Problem in place of what the database refuses */
export async function withPostgres<T>(
  context: Context,
  url: string,
  work: (database: PostgresServer) => Promise<T>,
): Promise<T> {
  const database = await PostgresServer.at(context, url);
  try {
    await database.connect();
    return await work(database).catch((error: unknown) => {
      throw refused(error, database);
    });
  } finally {
    await database.close();
  }
}

const NO_SCHEMA =
  'has no schema fenced_lock: npx prisma migrate deploy, after npx fenced-lock init if no migration makes it yet; or with ' +
  `prisma db push ${PUSHED}; or without Prisma apply what npx fenced-lock sql prints`;
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
export function refused(error: unknown, { shown }: PostgresServer): unknown {
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
