import type pg from 'pg';
import type { Context } from '../context.js';
import { codeOf, messageOf, Problem } from '../problem.js';

/** What the commands need of a database. */
export interface Database {
  /** `user@host:port/database`, as messages may show it. */
  readonly shown: string;
  /** The Postgres schema that Prisma's URLs name, for tables without one of their own. */
  readonly schema: string | undefined;
  query<Row extends object>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

const CONNECT_WITHIN = 10_000;

/** @throws Problem where it cannot be reached */
export async function connectPostgres(context: Context, url: string): Promise<Database> {
  context.hide(url);
  if (!/^postgres(ql)?:\/\//.test(url)) {
    throw new Problem(
      'The database URL must begin with postgresql:// and lead to PostgreSQL itself: what Accelerate serves cannot be used.',
    );
  }
  const { Client } = await driver();
  let client: pg.Client;
  try {
    client = new Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_WITHIN,
      application_name: 'fenced-lock',
    });
  } catch {
    // Its own message quotes the URL.
    throw new Problem('The database URL cannot be read: check that special characters in it are percent-encoded.');
  }
  const shown = `${client.user}@${client.host}:${client.port}/${client.database}`;
  // A connection that breaks is noticed by the next query.
  client.on('error', () => {});
  await client.connect().catch((error: unknown) => {
    const reason = messageOf(error) || codeOf(error);
    throw new Problem(`PostgreSQL at ${shown} cannot be reached: ${reason}.`, { cause: error });
  });
  return {
    shown,
    schema: new URL(url).searchParams.get('schema') ?? undefined,
    query: async <Row extends object>(sql: string, values: readonly unknown[] = []) =>
      (await client.query<Row>(sql, [...values])).rows,
    close: () => client.end().catch(() => {}),
  };
}

export function notInstalled({ shown }: Database): Problem {
  return new Problem(`${shown} has no schema fenced_lock: npx fenced-lock init && npx prisma migrate deploy.`);
}

/** Runs something in one transaction. Settings made by it end with it, also behind a pooler. */
export async function inTransaction<T>(database: Database, begin: string, work: () => Promise<T>): Promise<T> {
  await database.query(begin);
  try {
    const result = await work();
    await database.query('COMMIT');
    return result;
  } catch (error) {
    await database.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** Loaded only by the commands that connect: the package works without it. */
async function driver(): Promise<typeof pg> {
  try {
    return (await import('pg')).default;
  } catch (cause) {
    throw new Problem('This command needs the driver of PostgreSQL: npm install pg.', { cause });
  }
}
