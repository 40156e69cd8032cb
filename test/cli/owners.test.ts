import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIT } from '../../src/database/sql.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { findings } from './patient.js';
import { project, ROOT } from './project.js';

const RIGHTS = readFileSync(join(ROOT, 'docs/rights.md'), 'utf8');
const DATASOURCE = 'datasource db {\n  provider = "postgresql"\n}\n';

describe('the owner of guarded tables, where another role owns fenced_lock and keeps it for the application', () => {
  const id = randomUUID().replaceAll('-', '');
  const [owner, app] = [`owner_${id}`, `app_${id}`];
  let database: OwnDatabase;

  beforeAll(async () => {
    database = await createDatabase();
    await database.pool.query(`CREATE ROLE ${owner}; CREATE ROLE ${app}`);
  });
  afterAll(async () => {
    await database?.pool.query(`DROP OWNED BY ${owner}, ${app}; DROP ROLE ${owner}, ${app}`);
    await database?.[Symbol.asyncDispose]();
  });

  /** Deletes a parent under an admission, by a role that may lock. Returns what refuses it. */
  async function cascade(fence: number): Promise<unknown> {
    const client = await database.pool.connect();
    try {
      await client.query(
        `BEGIN; SET LOCAL session_replication_role = replica;
         INSERT INTO "Stock" (id) VALUES (1); INSERT INTO orders (id, fence) VALUES (1, ${fence}); COMMIT; BEGIN`,
      );
      await client.query(ADMIT, ['k', randomUUID(), randomUUID(), 9_000, 9_000, 9_000, null]);
      return await client.query('DELETE FROM "Stock"').then(
        () => undefined,
        (error: { code: string }) => error.code,
      );
    } finally {
      await client.query('ROLLBACK; SET session_replication_role = replica; DELETE FROM orders; DELETE FROM "Stock"');
      client.release(true);
    }
  }

  test('gets the rights of docs/rights.md and no others, so that cascades go by the guard', async () => {
    await database.pool.query(
      `CREATE TABLE "Stock" (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
       CREATE TABLE orders (id int PRIMARY KEY REFERENCES "Stock" ON DELETE CASCADE);
       ALTER TABLE "Stock" OWNER TO ${owner}; ALTER TABLE orders OWNER TO ${owner}`,
    );
    const here = project({
      'prisma/schema.prisma': `${DATASOURCE}model Order {\n  id Int @id\n  @@map("orders")\n}\n`,
    });
    for (const command of [['init'], ['add-fence', 'Order', '--guard', 'prove'], ['init', '--role', app]]) {
      expect(await here.run(...command)).toMatchObject({ code: 0 });
      await database.pool.query(here.migration().sql);
    }
    expect([await cascade(0), await cascade(5_000)]).toEqual([undefined, 'FL001']);
    const { rows } = await database.pool.query<{ name: string }>(
      `SELECT proname AS name FROM pg_proc WHERE pronamespace = 'fenced_lock'::regnamespace
       AND has_function_privilege($1, oid, 'EXECUTE') ORDER BY 1`,
      [owner],
    );
    const named = /GRANT USAGE ON SCHEMA fenced_lock TO "owner_of_tables";[^;]*;/.exec(RIGHTS)?.[0] ?? '';
    expect(rows.map(({ name }) => name)).toEqual([...named.matchAll(/fenced_lock\.(\w+)\(/g)].map(([, name]) => name));

    // Without them doctor says which are lacking.
    const owners = async () =>
      findings(await here.run('doctor', '--json', '--database-url', database.url)).filter(
        ({ check }) => check === 'owners',
      );
    await database.pool.query(`REVOKE ALL ON SCHEMA fenced_lock FROM ${owner};
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fenced_lock FROM ${owner}`);
    expect(await cascade(0)).toBe('42501');
    const [found] = await owners();
    const lacks = 'who may not use the schema fenced_lock, and may not call check_writer';
    expect(found).toMatchObject({ status: 'fault', message: expect.stringContaining(lacks) });
    await database.pool.query(found?.remedy ?? '');
    expect([await cascade(0), await cascade(5_000)]).toEqual([undefined, 'FL001']);
    expect(await owners()).toMatchObject([{ status: 'ok' }]);
  });

  test('makes and attaches partitions, which get the guard', async () => {
    await database.pool.query(
      `CREATE TABLE sales (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
       CREATE TABLE later (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
       GRANT CREATE ON SCHEMA public TO ${owner}; ALTER TABLE sales OWNER TO ${owner}; ALTER TABLE later OWNER TO ${owner}`,
    );
    const here = project({ 'prisma/schema.prisma': `${DATASOURCE}model sales {\n  id Int @id\n}\n` });
    await here.run('init', '--role', app);
    await here.run('add-fence', 'sales');
    await database.pool.query(here.migration().sql);
    await database.pool.query(
      `SET ROLE ${owner}; CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10);
       ALTER TABLE sales ATTACH PARTITION later FOR VALUES FROM (10) TO (20); RESET ROLE`,
    );
  });
});
