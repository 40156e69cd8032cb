import { ServerUnavailable } from './server.js';

/** The part of a client of pg that is used here: its types are a package of their own. */
export interface PgClient {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: Record<string, unknown>[] }>;
  connect(): Promise<void>;
  end(): Promise<void>;
  on(event: 'error', listener: (error: unknown) => void): unknown;
}

interface Pg {
  readonly Client: new (config: { connectionString: string; connectionTimeoutMillis: number }) => PgClient;
}

/** Only those need it who ask for a server. @throws ServerUnavailable where the package is not installed. */
export async function loadPg(): Promise<Pg> {
  try {
    const pg = (await import('pg')) as unknown as Pg & { readonly default?: Pg };
    return pg.default ?? pg;
  } catch (cause) {
    const why = 'No Postgres: the package that connects to it is missing: npm install --save-dev pg.';
    throw new ServerUnavailable(why, { cause });
  }
}

/** Work on a connection of its own. */
export async function onPostgres<T>(url: string, work: (client: PgClient) => Promise<T>): Promise<T> {
  const { Client } = await loadPg();
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // A connection that breaks is reported by the query as well; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** One statement; the first row. */
export async function queryOnce<Row extends object>(url: string, sql: string): Promise<Row | undefined> {
  return await onPostgres(url, async (client) => (await client.query(sql)).rows[0] as Row | undefined);
}

export function withDatabase(url: string, database: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href;
}
