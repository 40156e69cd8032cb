import { Client } from 'pg';

/** Runs `work` on a connection of its own. */
export async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  // The error of a broken connection also rejects the query that was running.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

export async function count(url: string, table: string): Promise<number> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table}`),
  );
  return rows[0]?.n ?? Number.NaN;
}
