import { copyFileSync, writeFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createDatabase, type OwnDatabase } from '../cli/database.js';
import { blocks } from '../docs/page.js';
import { installed, type PackedProject } from '../package/packed.js';
import { applyMigrations } from '../support/servers/index.js';
import { describeWithShop } from '../support/shop.js';

const PAGE = 'docs/guides/other-orms.md';
const SCENARIO = new URL('fixtures/orms/scenario.ts', import.meta.url);
/** Needs a newer Node than this package: its project has one. */
const OWN_NODE = ['prisma-8', 'mikro-orm'];

/** A constraint that is checked at COMMIT and not before. */
const AT_COMMIT = `
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too many' USING ERRCODE = '23514'; END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON "Stock" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.quantity = 1000) EXECUTE FUNCTION refuse();
`;

/** The project of an ORM, with the modules of the page, installed from the registry and the tarball. */
async function projectOf(name: string): Promise<PackedProject> {
  const project = await installed(new URL(`fixtures/${name}/`, import.meta.url));
  if (OWN_NODE.includes(name)) project.node = project.path('node_modules/node/bin/node');
  copyFileSync(SCENARIO, project.path('src/scenario.ts'));
  for (const text of blocks(PAGE)) {
    const [, module] = /^\/\/ (\S+)\n/.exec(text) ?? [];
    if (module === 'locks.ts' || module === `${name}.ts`) writeFileSync(project.path('src', module), text);
  }
  return project;
}

/** Compiles the project, and runs it on a row of the database. */
async function play(project: PackedProject, { url, pool }: OwnDatabase): Promise<unknown> {
  const client = pool as pg.Pool;
  await client.query(AT_COMMIT);
  const { rows } = await client.query(`INSERT INTO "Stock" (product, quantity) VALUES ('mug', 50) RETURNING id`);
  expect(await project.run(project.path('node_modules/typescript/bin/tsc'))).toBe('');
  const env = { DATABASE_URL: url, REDIS_URL: inject('redis').url ?? '', STOCK_ID: String(rows[0]?.id) };
  return JSON.parse(await project.runWith(env, project.path('dist/main.js')));
}

describeWithShop('an ORM on `locks.pool`, installed from the registry and the tarball', () => {
  const SAID = {
    result: 'of the transaction',
    thrown: true,
    // The first one was the lock's, and has committed.
    'two transactions': 'HookFailedError HOOK_FAILED',
    none: 'TransactionAbortedError TRANSACTION_ABORTED',
    'beside, read': 30,
    'beside, written': expect.stringContaining('INSIDE_TRANSACTION'),
    nested: 30,
    streamed: 1,
    'COMMIT refused': 'TransactionAbortedError TRANSACTION_ABORTED',
    left: 30,
    warnings: [],
  };

  test.each(['typeorm', 'mikro-orm', 'knex'])('%s: its transaction is that of the lock', async (name) => {
    await using database = await createDatabase();
    await setUpShop(database);
    await guard(database);
    const project = await projectOf(name);
    expect(await play(project, database)).toEqual(SAID);
    project.remove();
  }, 300_000);
});
