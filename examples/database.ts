import { readFileSync } from 'node:fs';
import pg from 'pg';
import { setUpShop } from '../test/support/shop-database.js';

/** The shop's tables and those of schema.sql in an empty database. Returns the url of the application's role. */
export async function setUpExamples(url: string): Promise<string> {
  const app = await setUpShop({ url });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(readFileSync(new URL('schema.sql', import.meta.url), 'utf8'));
    const { username } = new URL(app);
    await client.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${username}`);
    await client.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${username}`);
  } finally {
    await client.end();
  }
  return app;
}
