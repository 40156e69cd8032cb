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

/** A connection of its own. Loads pg, which only those need who ask for a server. */
export async function connectTo(url: string): Promise<PgClient> {
  const pg = (await import('pg')) as unknown as Pg & { readonly default?: Pg };
  const { Client } = pg.default ?? pg;
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
