import { ServerUnavailable } from './errors.js';

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

/** A connection of its own. */
export async function connectTo(url: string): Promise<PgClient> {
  const { Client } = await loadPg();
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // A connection that breaks is reported by the query as well; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}
