import type pg from 'pg';
import type { Context } from '../context.js';
import { codeOf, messageOf, Problem } from '../problem.js';
import { PUSHED } from '../project/remedies.js';

/** What the commands need of a database. */
export interface PostgresServer {
  /** `user@host:port/database`, as messages may show it. */
  readonly shown: string;
  /** The Postgres schema of tables whose model names none. */
  readonly schema: string;
  /** One statement in a transaction of its own. */
  readonly query: ServerQuery;
  /** Several in one. Settings made in it end with it, also behind a pooler. */
  transaction<T>(begin: string, work: (query: ServerQuery) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export type ServerQuery = <Row extends object>(sql: string, values?: readonly unknown[]) => Promise<Row[]>;

const CONNECT_WITHIN = 10_000;

/**
 * Whoever runs the command is often the owner of everything. A function or an operator that somebody has planted in
 * `public` must not run with his rights: names are looked up in the catalog alone. For the transaction and not for the
 * session, which a pooler gives to the application afterwards.
 */
const CATALOG_ALONE = `SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`;

/** @throws Problem where it cannot be reached */
export async function connectPostgres(context: Context, url: string): Promise<PostgresServer> {
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
    // As Prisma, which goes by its URL and not by the search_path of the role.
    schema: new URL(url).searchParams.get('schema') ?? 'public',
    query: (sql, values) => transaction('BEGIN', (query) => query(sql, values)),
    transaction,
    close: () => client.end().catch(() => {}),
  };
}

export function notInstalled({ shown }: PostgresServer): Problem {
  return new Problem(
    `${shown} has no schema fenced_lock: npx fenced-lock init && npx prisma migrate deploy, or with prisma db push ${PUSHED}.`,
  );
}

/** Loaded only by the commands that connect: the package works without it. */
async function driver(): Promise<typeof pg> {
  try {
    return (await import('pg')).default;
  } catch (cause) {
    throw new Problem('This command needs the driver of PostgreSQL: npm install pg.', { cause });
  }
}
