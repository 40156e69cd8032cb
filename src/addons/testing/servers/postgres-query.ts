import { connectTo } from './pg.js';

/** One statement on a connection of its own; the first row. */
export async function queryOnce<Row extends Record<string, unknown>>(
  url: string,
  sql: string,
): Promise<Row | undefined> {
  const client = await connectTo(url);
  try {
    return (await client.query(sql)).rows[0] as Row | undefined;
  } finally {
    await client.end().catch(() => {});
  }
}
