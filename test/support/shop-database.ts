import pg from 'pg';
import { applyMigrations } from './servers/index.js';

/** The role of the application: not the one that migrates, and with no right on the tables of `fenced_lock`. */
const ROLE = 'shop_app';

/** Applies the migrations and makes the application's role. Returns its url. */
export async function setUpShop({ url }: { readonly url: string }): Promise<string> {
  await applyMigrations(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(
      `DO $$ BEGIN CREATE ROLE ${ROLE} LOGIN PASSWORD '${ROLE}'; EXCEPTION WHEN duplicate_object THEN END $$`,
    );
    // All that it needs beside its own tables, USAGE and EXECUTE, the migration gave to everybody.
    await client.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON "Stock", "Order", "Ledger" TO ${ROLE}`);
    await client.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${ROLE}`);
  } finally {
    await client.end();
  }
  return Object.assign(new URL(url), { username: ROLE, password: ROLE }).href;
}
