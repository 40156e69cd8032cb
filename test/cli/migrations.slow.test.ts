import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packagedScript } from '../../src/cli/migrations/packaged.js';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { Project } from './project.js';
import { readMigrations, readSchema, schemaEngine } from './schema-engine.js';

const FOLDER = 'prisma/schema';
const MIGRATIONS = `${FOLDER}/migrations`;
const BASELINE = `${MIGRATIONS}/20260101000000_baseline/migration.sql`;
const LOCK = 'provider = "postgresql"\n';

/** Opens the engine on a project as it is now. */
const engineOf = (project: Project, database: OwnDatabase) =>
  schemaEngine(database.url, readSchema(project.path(FOLDER)));

async function bookshop(database: OwnDatabase): Promise<Project> {
  const project = new Project({ [FOLDER]: 'fixture:bookshop', [`${MIGRATIONS}/migration_lock.toml`]: LOCK });
  const engine = await engineOf(project, database);
  project.write(BASELINE, await engine.fromNothing());
  await engine.close();
  return project;
}

describe('the migrations that the command writes', () => {
  let database: OwnDatabase;
  let project: Project;

  beforeAll(async () => {
    database = await createDatabase();
    project = await bookshop(database);
    for (const args of [['init'], ['add-fence', 'Stock', 'Order', 'User', 'Shelf']]) {
      expect(await project.run(...args)).toMatchObject({ code: 0 });
    }
  });
  afterAll(async () => {
    project?.remove();
    await database?.[Symbol.asyncDispose]();
  });

  test("Prisma's schema engine applies them, sees no drift, and would drop nothing of ours", async () => {
    const engine = await engineOf(project, database);
    const list = readMigrations(project.path(MIGRATIONS));
    expect(await engine.deploy(list)).toHaveLength(3);
    expect(await engine.diagnose(list)).toMatchObject({
      hasMigrationsTable: true,
      editedMigrationNames: [],
      failedMigrationNames: [],
      history: null,
    });
    expect(await engine.dev(list)).toEqual({ action: { tag: 'createMigration' } });
    expect(await engine.next(list)).toMatch(/^(-- This is an empty migration\.)?$/);
    await engine.close();
    const { rows } = await database.pool.query(
      `SELECT tgrelid::regclass::text AS table FROM pg_trigger WHERE tgname = 'zzz_fenced_lock_guard' ORDER BY 1`,
    );
    expect(rows.map(({ table }) => table)).toEqual(['"Shelf"', 'people.users', 'sales.orders', 'stock']);
  });

  test('remove-fence is taken by the engine as well, and leaves nothing behind', async () => {
    await using other = await createDatabase();
    const removing = await bookshop(other);
    const baseline = removing.files();
    await removing.run('init');
    await removing.run('add-fence', 'Stock', 'Order', '--guard', 'require');
    expect(await removing.run('remove-fence', 'Order', 'Stock')).toMatchObject({ code: 0 });
    const engine = await engineOf(removing, other);
    const list = readMigrations(removing.path(MIGRATIONS));
    expect(await engine.deploy(list)).toHaveLength(4);
    expect(await engine.next(list)).toMatch(/^(-- This is an empty migration\.)?$/);
    await engine.close();
    expect(removing.files()).toMatchObject(baseline);
    const { rows } = await other.pool.query(`SELECT 1 FROM pg_trigger WHERE tgname LIKE 'zzz%'`);
    expect(rows).toEqual([]);
    removing.remove();
  });

  test('they are clean under squawk', async () => {
    expect(squawk(project.migration(MIGRATIONS).sql)).toBe('');
    await project.run('remove-fence', 'Shelf');
    // It is what the user asked for, and its message says to deploy the application first.
    expect(squawk(project.migration(MIGRATIONS).sql, 'ban-drop-column')).toBe('');
    // It only makes what was not there, so nobody can be in its way, nor it in theirs.
    const { sql: objects } = await packagedScript();
    expect(squawk(objects, 'require-lock-timeout,require-statement-timeout')).toBe('');
  });
});

/** Prisma sends a migration as one text, so in one transaction. */
function squawk(sql: string, exclude?: string): string {
  const program = createRequire(import.meta.url).resolve('squawk-cli/js/bin/squawk');
  const args = ['--reporter=gcc', '--assume-in-transaction', '--pg-version=14'];
  if (exclude !== undefined) args.push(`--exclude=${exclude}`);
  const ran = spawnSync(process.execPath, [program, ...args], { input: sql, encoding: 'utf8' });
  if (ran.error) throw ran.error;
  return ran.status === 0 ? '' : ran.stdout + ran.stderr;
}

describe('ADD COLUMN on a table of a million rows', () => {
  let database: OwnDatabase;
  let project: Project;

  beforeAll(async () => {
    database = await createDatabase();
    project = new Project({
      'prisma/schema.prisma': 'datasource db {\n  provider = "postgresql"\n}\n\nmodel Big {\n  id Int @id\n}\n',
    });
    await project.run('init');
    await applyMigrations(database.url, { dir: project.path('prisma/migrations') });
    await database.pool.query('CREATE TABLE "Big" AS SELECT n AS id FROM generate_series(1, 1000000) AS n');
    await project.run('add-fence', 'Big');
  });
  afterAll(async () => {
    project?.remove();
    await database?.[Symbol.asyncDispose]();
  });

  const deploy = () => applyMigrations(database.url, { dir: project.path('prisma/migrations') });

  test('gives up after its lock_timeout behind a long reader, and lets the readers after it through', async () => {
    const reader = await database.pool.connect();
    await reader.query('BEGIN');
    await reader.query('SELECT count(*) FROM "Big"');
    const started = performance.now();
    await expect(deploy()).rejects.toThrow(/lock timeout/);
    const waited = performance.now() - started;
    expect(waited).toBeGreaterThan(1_900);
    await database.pool.query('SELECT 1 FROM "Big" LIMIT 1');
    await reader.query('COMMIT');
    reader.release();
  });

  test('rewrites nothing: the file of the table stays the same', async () => {
    const file = async () =>
      (await database.pool.query(`SELECT pg_relation_filenode('"Big"') AS node, pg_relation_size('"Big"') AS size`))
        .rows[0];
    const before = await file();
    await deploy();
    expect(await file()).toEqual(before);
    const { rows } = await database.pool.query('SELECT count(*)::int AS rows FROM "Big" WHERE fence = 0');
    expect(rows).toEqual([{ rows: 1_000_000 }]);
  });
});
