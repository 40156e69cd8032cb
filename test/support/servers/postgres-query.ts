import { Client } from 'pg';

/** One statement on a connection of its own; the first row. */
export async function queryOnce<Row extends Record<string, unknown>>(
  url: string,
  sql: string,
): Promise<Row | undefined> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // A connection that breaks is reported by the query as well; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query<Row>(sql)).rows[0];
  } finally {
    await client.end().catch(() => {});
  }
}
