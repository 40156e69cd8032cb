import { cpSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase, type OwnDatabase } from './database.js';
import { type Project, project } from './project.js';
import { readMigrations, readSchema, schemaEngine } from './schema-engine.js';

const SCHEMA = 'datasource db {\n  provider = "postgresql"\n}\n\nmodel Stock {\n  id Int @id\n}\n';
const MIGRATIONS = 'prisma/migrations';

/** A project with our objects and a fence, as it is after some commands. */
async function shop(): Promise<Project> {
  const fresh = project({ 'prisma/schema.prisma': SCHEMA });
  fresh.write(
    `${MIGRATIONS}/20260101000000_tables/migration.sql`,
    'CREATE TABLE "Stock" ("id" INTEGER NOT NULL, CONSTRAINT "Stock_pkey" PRIMARY KEY ("id"));\n',
  );
  expect(await fresh.run('init')).toMatchObject({ code: 0 });
  expect(await fresh.run('add-fence', 'Stock')).toMatchObject({ code: 0 });
  return fresh;
}

/** Prisma's own engine in a project, until the test ends. */
async function prisma(project: Project, database: OwnDatabase) {
  const engine = await schemaEngine(database.url, readSchema(project.path('prisma')));
  let closed = false;
  const close = async () => {
    if (!closed) await engine.close();
    closed = true;
  };
  onTestFinished(close);
  const migrations = () => readMigrations(project.path(MIGRATIONS));
  return {
    close,
    deploy: () => engine.deploy(migrations()),
    reset: () => engine.reset(),
    /** What `migrate dev` does next, and the script that it would write. */
    dev: async () => [(await engine.dev(migrations())).action, await engine.next(migrations())],
  };
}

/** It asks for no reset, and has nothing to write. */
const AT_REST = [{ tag: 'createMigration' }, expect.stringMatching(/^(-- This is an empty migration\.)?$/)];

/** Tokens that must never be drawn again, and the row of a key. */
async function tokens({ pool }: OwnDatabase): Promise<object[]> {
  const { rows } = await pool.query(
    'SELECT s.last_value::int AS last, a.key, a.token::int FROM fenced_lock.token AS s, fenced_lock.admission AS a',
  );
  return rows;
}
const KEPT = [{ last: 42, key: 'stock:1', token: 42 }];
const USED = `SELECT setval('fenced_lock.token', 42); INSERT INTO fenced_lock.admission
  (key, token, holder, born, turns, attempts, admitted_at) VALUES ('stock:1', 42, gen_random_uuid(), 0, 1, '{}', now())`;

test('migrate reset, deploy and migrate dev go through again and again, and keep the tokens', async () => {
  await using database = await createDatabase();
  const engine = await prisma(await shop(), database);
  expect(await engine.deploy()).toHaveLength(3);
  await database.pool.query(USED);
  for (let round = 0; round < 3; round++) {
    await engine.reset();
    expect((await database.pool.query(`SELECT to_regclass('"Stock"') AS stock`)).rows).toEqual([{ stock: null }]);
    expect(await engine.deploy()).toHaveLength(3);
    expect(await tokens(database)).toEqual(KEPT);
    expect(await engine.dev()).toEqual(AT_REST);
    expect(await engine.deploy()).toEqual([]);
  }
});

test('a restored dump of the tables alone is told how to get the objects back, and gets them', async () => {
  await using database = await createDatabase();
  const own = await shop();
  await (await prisma(own, database)).deploy();
  await database.pool.query('DROP SCHEMA fenced_lock CASCADE');
  const ran = await own.run('doctor', '--database-url', database.url);
  const file = /npx prisma db execute --file (\S+)/.exec(ran.out)?.[1];
  await database.pool.query(own.read(file ?? 'none'));
  const { out } = await own.run('doctor', '--database-url', database.url);
  expect(out).toMatch(/ok +objects +Version/);
});

test('two branches that have both run init go together in either order, and keep the tokens', async () => {
  await using database = await createDatabase();
  const merged = await shop();
  const engine = await prisma(merged, database);
  await engine.deploy();
  await database.pool.query(USED);
  for (const other of ['20260102000000_fenced_lock', '20270101000000_fenced_lock']) {
    cpSync(merged.path(MIGRATIONS, '20261120100000_fenced_lock'), merged.path(MIGRATIONS, other), { recursive: true });
    expect(await engine.deploy()).toEqual([other]);
    expect(await tokens(database)).toEqual(KEPT);
    expect(await engine.dev()).toEqual(AT_REST);
  }
  await engine.reset();
  expect(await engine.deploy()).toHaveLength(5);
  expect(await tokens(database)).toEqual(KEPT);
});
