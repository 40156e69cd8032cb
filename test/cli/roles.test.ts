import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applicationFunctions, packagedScript } from '../../src/cli/migrations/packaged.js';
import * as statements from '../../src/database/sql.js';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { type Project, project } from './project.js';

const SCHEMA = 'datasource db {\n  provider = "postgresql"\n}\n\nmodel Stock {\n  id Int @id\n}\n';
const TABLE = 'CREATE TABLE "Stock" (id int PRIMARY KEY);';
const shop = () =>
  project({ 'prisma/schema.prisma': SCHEMA, 'prisma/migrations/20260101000000_tables/migration.sql': TABLE });
const deploy = (to: OwnDatabase, from: Project) => applyMigrations(to.url, { dir: from.path('prisma/migrations') });

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

describe('init --role', () => {
  let admin: OwnDatabase;
  // Its name needs its quotation marks.
  const app = `App "of" ${randomUUID()}`;
  const bystander = `bystander ${randomUUID()}`;
  const quoted = (role: string) => pg.escapeIdentifier(role);

  beforeAll(async () => {
    admin = await createDatabase();
    for (const role of [app, bystander]) await admin.pool.query(`CREATE ROLE ${quoted(role)}`);
  });
  afterAll(async () => {
    for (const role of [app, bystander]) await admin?.pool.query(`DROP ROLE IF EXISTS ${quoted(role)}`);
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

  test('the functions that it grants are those that everybody may call without it, but those of triggers', async () => {
    await using database = await createDatabase();
    const fresh = shop();
    await fresh.run('init');
    await deploy(database, fresh);
    const { rows } = await database.pool.query<{ name: string }>(
      `SELECT oid::regprocedure::text AS name FROM pg_proc WHERE pronamespace = 'fenced_lock'::regnamespace
       AND has_function_privilege($1, oid, 'EXECUTE') AND prorettype <> 'trigger'::regtype`,
      [bystander],
    );
    const granted = applicationFunctions((await packagedScript()).sql);
    expect(granted.toSorted()).toEqual(rows.map(({ name }) => name.replaceAll(',', ', ')).toSorted());
  });

  test.each(['allow', 'require', 'prove'])(
    'a role that it names can lock under a guard that says %s',
    async (policy) => {
      await using database = await createDatabase();
      const fresh = shop();
      expect(await fresh.run('init', '--role', app, '--role', bystander)).toMatchObject({ code: 0 });
      await fresh.run('add-fence', 'Stock', '--guard', policy);
      await deploy(database, fresh);
      await database.pool.query(`GRANT ALL ON "Stock" TO ${quoted(app)}`);
      await as(app, database, async (client) => {
        for (const [name, sql] of Object.entries(statements)) {
          // The last one comes behind an admission.
          if (!sql.includes('fenced_lock.') || name === 'END_BLOCKERS' || name === 'MARK_RUN') continue;
          await client.query(sql, [...(CALLS[name] ?? [`no values for ${name}`])]);
        }
        await client.query('BEGIN');
        await client.query(statements.ADMIT, [...(CALLS['ADMIT'] ?? [])]);
        await client.query(statements.MARK_RUN, [...(CALLS['MARK_RUN'] ?? [])]);
        await client.query(
          'INSERT INTO "Stock" VALUES (1); UPDATE "Stock" SET id = 2; DELETE FROM "Stock"; TRUNCATE "Stock"',
        );
        await client.query('INSERT INTO "Stock" VALUES (1)');
        await client.query('COMMIT');
        await client.query('BEGIN');
        await client.query(`SELECT set_config('fenced_lock.token', '0', true)`);
        // Also what the guard says when it refuses.
        const refused = client.query('UPDATE "Stock" SET id = 2');
        await expect(refused).rejects.toMatchObject({ code: policy === 'prove' ? 'FL002' : 'FL001' });
        await client.query('ROLLBACK');
        await expect(client.query(`SELECT fenced_lock.override('why')`)).rejects.toMatchObject({ code: '42501' });
      });
    },
  );

  test('a role that it does not name can do nothing', async () => {
    await using database = await createDatabase();
    const fresh = shop();
    await fresh.run('init', '--role', app);
    await deploy(database, fresh);
    await as(bystander, database, async (client) => {
      for (const [name, values] of Object.entries(CALLS)) {
        const sql = (statements as Readonly<Record<string, string>>)[name] ?? '';
        if (name === 'END_BACKEND') continue;
        await expect(client.query(sql, [...values]), name).rejects.toMatchObject({ code: '42501' });
      }
    });
    const { rows } = await database.pool.query(
      `SELECT p.oid::regprocedure AS function FROM pg_proc AS p WHERE pronamespace = 'fenced_lock'::regnamespace
       AND has_function_privilege($1, p.oid, 'EXECUTE')`,
      [bystander],
    );
    expect(rows).toEqual([]);
  });

  test('where the objects are there, it writes the grants alone, and each role once', async () => {
    await using database = await createDatabase();
    const fresh = shop();
    await fresh.run('init');
    expect(await fresh.run('init', '--role', app, '--json')).toMatchObject({ code: 0, json: { roles: [app] } });
    expect(fresh.migration().name).toMatch(/_fenced_lock_roles$/);
    expect(fresh.migration().sql).not.toContain('CREATE');
    expect(await fresh.run('init', '--role', app, '--json')).toMatchObject({ code: 0, json: { migration: null } });
    await fresh.run('init', '--role', app, '--role', bystander);
    expect(fresh.migration().sql).not.toContain(quoted(app));
    await deploy(database, fresh);
    for (const role of [app, bystander]) {
      await as(role, database, (client) => client.query(statements.ADMIT, [...(CALLS['ADMIT'] ?? [])]));
    }
  });

  test('upgrade lets the same roles lock, and nobody else', async () => {
    await using database = await createDatabase();
    const fresh = shop();
    await fresh.run('init', '--role', app, '--role', bystander);
    await deploy(database, fresh);
    // The objects as of a version that had a function less.
    await database.pool.query(
      `DROP FUNCTION fenced_lock.evidence; REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fenced_lock FROM ${quoted(bystander)};
       COMMENT ON SCHEMA fenced_lock IS 'prisma-extension-fenced-lock objects 1'`,
    );
    const { name, sql } = fresh.migration();
    fresh.write(`prisma/migrations/${name}/migration.sql`, sql.replace(/objects \d+';$/m, "objects 1';"));
    expect(await fresh.run('init', '--role', 'third')).toMatchObject({
      code: 1,
      err: expect.stringContaining('first npx fenced-lock upgrade'),
    });
    expect(await fresh.run('upgrade')).toMatchObject({ code: 0 });
    await database.pool.query(fresh.migration().sql);
    await as(app, database, async (client) => {
      await client.query(statements.ADMIT, [...(CALLS['ADMIT'] ?? [])]);
      await client.query(statements.EVIDENCE, [...(CALLS['EVIDENCE'] ?? [])]);
    });
    await as(bystander, database, (client) =>
      expect(client.query(statements.EVIDENCE, [...(CALLS['EVIDENCE'] ?? [])])).rejects.toMatchObject({
        code: '42501',
      }),
    );
  });
});
