import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applicationFunctions, packagedScript } from '../../src/cli/migrations/packaged.js';
import * as statements from '../../src/database/sql.js';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { findings } from './patient.js';
import { type Project, project, ROOT } from './project.js';

const DATASOURCE = 'datasource db {\n  provider = "postgresql"\n}\n\n';
const shop = (table: string, model = 'model Stock {\n  id Int @id\n}\n') =>
  project({
    'prisma/schema.prisma': DATASOURCE + model,
    'prisma/migrations/20260101000000_tables/migration.sql': table,
  });
const STOCK = 'CREATE TABLE "Stock" (id int PRIMARY KEY);';
const deploy = (to: OwnDatabase, from: Project) => applyMigrations(to.url, { dir: from.path('prisma/migrations') });
const quoted = (role: string) => pg.escapeIdentifier(role);

/** What the client sends to our functions, with values that fit. */
const CALLS: Readonly<Record<string, readonly unknown[]>> = {
  ADMIT: ['k', randomUUID(), randomUUID(), 1_000, 1_000, 1_000, null],
  ADMIT_KEYS: [['k'], [randomUUID()], randomUUID(), 1_000, 1_000, 1_000, null, null, null, null],
  EVIDENCE: ['k', '1'],
  END_BACKEND: [0, '1', null],
  START_EPOCH: [],
  GUARDS: [],
  TOUCH: ['["k"]', '["00000000-0000-0000-0000-000000000000"]', '["1"]'],
  AWAIT_ROW: ['public', 'Stock', '{"id":1}'],
  LAST_ADMISSIONS: ['["k"]'],
  NEXT_RUN: ['k', 1_000, 0, 0],
  MARK_RUN: ['k', 1_000, 0, 0],
};
const send = (client: pg.PoolClient, name: string) =>
  client.query((statements as Readonly<Record<string, string>>)[name] ?? '', [...(CALLS[name] ?? [name])]);

// Their names need their quotation marks.
const [app, bystander, owner] = ['App "of"', 'bystander', 'owner of tables'].map(
  (name) => `${name} ${randomUUID()}`,
) as [string, string, string];

describe('rights, where fenced_lock is kept for the application', () => {
  let admin: OwnDatabase;
  beforeAll(async () => {
    admin = await createDatabase();
    for (const role of [app, bystander, owner]) await admin.pool.query(`CREATE ROLE ${quoted(role)}`);
  });
  afterAll(async () => {
    for (const role of [app, bystander, owner]) await admin?.pool.query(`DROP ROLE IF EXISTS ${quoted(role)}`);
    await admin?.[Symbol.asyncDispose]();
  });

  /** Runs something as one of the roles. */
  async function as<T>(role: string, database: OwnDatabase, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await database.pool.connect();
    try {
      await client.query(`SET ROLE ${quoted(role)}`);
      return await work(client);
    } finally {
      client.release(true);
    }
  }
  /** The functions that a role may call, but those of triggers. */
  const callable = async ({ pool }: OwnDatabase, role: string) =>
    (
      await pool.query<{ name: string }>(
        `SELECT oid::regprocedure::text AS name FROM pg_proc WHERE pronamespace = 'fenced_lock'::regnamespace
         AND has_function_privilege($1, oid, 'EXECUTE') AND prorettype <> 'trigger'::regtype ORDER BY 1`,
        [role],
      )
    ).rows.map(({ name }) => name.replaceAll(',', ', '));

  test('init --role grants what everybody may call without it', async () => {
    await using database = await createDatabase();
    const fresh = shop(STOCK);
    await fresh.run('init');
    await deploy(database, fresh);
    const granted = applicationFunctions((await packagedScript()).sql);
    expect(granted.toSorted()).toEqual((await callable(database, bystander)).toSorted());
  });

  test.each(['allow', 'require', 'prove'])(
    'a role that it names can lock under a guard that says %s',
    async (policy) => {
      await using database = await createDatabase();
      const fresh = shop(STOCK);
      expect(await fresh.run('init', '--role', app)).toMatchObject({ code: 0 });
      await fresh.run('add-fence', 'Stock', '--guard', policy);
      await deploy(database, fresh);
      await database.pool.query(`GRANT ALL ON "Stock" TO ${quoted(app)}`);
      await as(app, database, async (client) => {
        for (const [name, sql] of Object.entries(statements)) {
          // The last one comes behind an admission.
          if (!sql.includes('fenced_lock.') || name === 'END_BLOCKERS' || name === 'MARK_RUN') continue;
          await send(client, name);
        }
        await client.query('BEGIN');
        await send(client, 'ADMIT');
        await send(client, 'MARK_RUN');
        await client.query(
          'INSERT INTO "Stock" VALUES (1); UPDATE "Stock" SET id = 2; DELETE FROM "Stock"; TRUNCATE "Stock"',
        );
        await client.query('INSERT INTO "Stock" VALUES (1); COMMIT; BEGIN');
        await client.query(`SELECT set_config('fenced_lock.token', '0', true)`);
        // Also what the guard says when it refuses.
        const refused = client.query('UPDATE "Stock" SET id = 2');
        await expect(refused).rejects.toMatchObject({ code: policy === 'prove' ? 'FL002' : 'FL001' });
        await client.query('ROLLBACK');
        await expect(client.query(`SELECT fenced_lock.override('why')`)).rejects.toMatchObject({ code: '42501' });
      });
      expect(await callable(database, bystander)).toEqual([]);
      await as(bystander, database, async (client) => {
        for (const name of Object.keys(CALLS)) {
          if (name === 'END_BACKEND') continue;
          await expect(send(client, name), name).rejects.toMatchObject({ code: '42501' });
        }
      });
    },
  );

  test('where the objects are there, init writes the grants alone; upgrade lets the same roles lock, and nobody else', async () => {
    await using database = await createDatabase();
    const fresh = shop(STOCK);
    await fresh.run('init');
    expect(await fresh.run('init', '--role', app, '--json')).toMatchObject({ code: 0, json: { roles: [app] } });
    expect(fresh.migration().name).toMatch(/_fenced_lock_roles$/);
    expect(fresh.migration().sql).not.toContain('CREATE');
    await deploy(database, fresh);
    await as(app, database, (client) => send(client, 'ADMIT'));
    // The objects as of a version that had a function less.
    await database.pool.query(
      `DROP FUNCTION fenced_lock.evidence; COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects 1'`,
    );
    const objects = 'prisma/migrations/20261120100000_fenced_lock/migration.sql';
    fresh.write(objects, fresh.read(objects).replace(/objects \d+';$/m, "objects 1';"));
    expect(await fresh.run('init', '--role', 'third')).toMatchObject({
      code: 1,
      err: expect.stringContaining('first npx fenced-lock upgrade'),
    });
    expect(await fresh.run('upgrade')).toMatchObject({ code: 0 });
    await database.pool.query(fresh.migration().sql);
    await as(app, database, (client) => send(client, 'EVIDENCE'));
    expect(await callable(database, bystander)).toEqual([]);
  });

  test('the owner of guarded tables gets the rights of docs/rights.md, so that cascades and partitions have the guard', async () => {
    await using database = await createDatabase();
    const tables = `CREATE TABLE "Stock" (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
      CREATE TABLE orders (id int PRIMARY KEY REFERENCES "Stock" ON DELETE CASCADE);
      CREATE TABLE sales (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0) PARTITION BY RANGE (id);
      CREATE TABLE later (id int PRIMARY KEY, fence bigint NOT NULL DEFAULT 0);
      GRANT CREATE ON SCHEMA public TO ${quoted(owner)};
      ${['"Stock"', 'orders', 'sales', 'later'].map((name) => `ALTER TABLE ${name} OWNER TO ${quoted(owner)};`).join('')}`;
    const models = 'model Order {\n  id Int @id\n  @@map("orders")\n}\n\nmodel sales {\n  id Int @id\n}\n';
    const here = shop(tables, models);
    await here.run('init');
    await here.run('add-fence', 'Order', '--guard', 'prove');
    await here.run('init', '--role', app);
    await here.run('add-fence', 'sales');
    await deploy(database, here);
    /** Deletes a parent under an admission, by a role that may lock. Returns what refuses it. */
    async function cascade(fence: number): Promise<unknown> {
      const client = await database.pool.connect();
      try {
        await client.query(
          `BEGIN; SET LOCAL session_replication_role = replica;
           INSERT INTO "Stock" (id) VALUES (1); INSERT INTO orders (id, fence) VALUES (1, ${fence}); COMMIT; BEGIN`,
        );
        await send(client, 'ADMIT');
        return await client.query('DELETE FROM "Stock"').then(
          () => undefined,
          (error: { code: string }) => error.code,
        );
      } finally {
        await client.query('ROLLBACK; SET session_replication_role = replica; DELETE FROM orders; DELETE FROM "Stock"');
        client.release(true);
      }
    }
    const named = readFileSync(join(ROOT, 'docs/rights.md'), 'utf8');
    const granted = /GRANT USAGE ON SCHEMA fenced_lock TO "owner_of_tables";[^;]*;/.exec(named)?.[0] ?? '';
    const functions = [...granted.matchAll(/fenced_lock\.(\w+)\(/g)].map(([, name]) => name);
    expect((await callable(database, owner)).map((name) => name.replace(/^fenced_lock\.|\(.*$/g, ''))).toEqual(
      functions,
    );
    expect([await cascade(0), await cascade(5_000)]).toEqual([undefined, 'FL001']);
    await database.pool.query(
      `SET ROLE ${quoted(owner)}; CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10);
       ALTER TABLE sales ATTACH PARTITION later FOR VALUES FROM (10) TO (20); RESET ROLE`,
    );

    // Without them doctor says which are lacking.
    const owners = async () =>
      findings(await here.run('doctor', '--json', '--database-url', database.url)).filter(
        ({ check }) => check === 'owners',
      );
    await database.pool.query(`REVOKE ALL ON SCHEMA fenced_lock FROM ${quoted(owner)};
      REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fenced_lock FROM ${quoted(owner)}`);
    expect(await cascade(0)).toBe('42501');
    const [found] = await owners();
    const lacks = 'who may not use the schema fenced_lock, and may not call check_writer';
    expect(found).toMatchObject({ status: 'fault', message: expect.stringContaining(lacks) });
    await database.pool.query(found?.remedy ?? '');
    expect([await cascade(0), await cascade(5_000)]).toEqual([undefined, 'FL001']);
    expect(await owners()).toMatchObject([{ status: 'ok' }]);
  });
});
