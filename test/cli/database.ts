import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** A database of its own on the tests' server, as the role that owns it. */
export interface OwnDatabase extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  readonly pool: pg.Pool;
}

/** @param role another role that may connect. */
export async function createDatabase(template?: OwnDatabase, role?: string): Promise<OwnDatabase> {
  const name = `cli_${randomUUID().replaceAll('-', '')}`;
  await asAdmin(`CREATE DATABASE ${name}${template === undefined ? '' : ` TEMPLATE ${template.name}`}`);
  // The server has the roles of all tests, of which doctor warns if they may connect.
  await asAdmin(`REVOKE CONNECT ON DATABASE ${name} FROM PUBLIC`);
  if (role !== undefined) await asAdmin(`GRANT CONNECT ON DATABASE ${name} TO ${role}`);
  const url = new URL(inject('postgres').admin);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 4 });
  pool.on('error', () => {});
  return {
    name,
    url: url.href,
    pool,
    async [Symbol.asyncDispose]() {
      if (!pool.ended) await pool.end();
      await asAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

async function asAdmin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('postgres').admin });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** Not as one URL: it would win over another name of the database beside it. */
export function partsOf(url: string): pg.PoolConfig {
  const { hostname, port, username, password, pathname } = new URL(url);
  const [user, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
  return { host: hostname, port: Number(port || 5432), user, password: secret, database: pathname.slice(1) };
}
