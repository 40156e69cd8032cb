import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createDatabase, type OwnDatabase } from '../cli/database.js';
import { blocks } from '../docs/page.js';
import { installed, type PackedProject } from '../package/packed.js';
import { describeWithShop } from '../support/shop.js';

const PAGE = 'docs/guides/other-orms.md';
const SCENARIO = new URL('fixtures/orms/scenario.ts', import.meta.url);
/** Need a newer Node than this package: their projects have one. */
const OWN_NODE = ['prisma-8', 'mikro-orm'];
const LONG = 300_000;

const TABLE = 'CREATE TABLE "Stock" (id serial PRIMARY KEY, product text NOT NULL UNIQUE, quantity int NOT NULL)';
/** A constraint that is checked at COMMIT and not before. */
const AT_COMMIT = `
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too many' USING ERRCODE = '23514'; END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON "Stock" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.quantity = 1000) EXECUTE FUNCTION refuse();
`;

/** The project of an ORM, with the modules of the page, installed from the registry and the tarball. */
async function projectOf(name: string): Promise<PackedProject> {
  const project = await installed(new URL(`fixtures/${name}/`, import.meta.url));
  onTestFinished(() => project.remove());
  if (OWN_NODE.includes(name)) {
    // Its script fetches the binary. Who runs these tests without scripts, as CI does, hands that down to npm.
    await promisify(execFile)('npm', ['rebuild', 'node', '--ignore-scripts=false'], { cwd: project.folder });
    project.node = project.path('node_modules/node/bin/node');
  }
  copyFileSync(SCENARIO, project.path('src/scenario.ts'));
  for (const text of blocks(PAGE)) {
    const [, module = ''] = /^\/\/ (\S+)\n/.exec(text) ?? [];
    if (module === 'locks.ts' || module === `${name}.ts`) writeFileSync(project.path('src', module), text);
  }
  return project;
}

/** As by `fenced-lock sql --table Stock`, in whatever migrates. */
async function fence(project: PackedProject, { pool }: OwnDatabase): Promise<void> {
  const command = project.path('node_modules/prisma-extension-fenced-lock/dist/cli/main.js');
  await pool.query(await project.run(command, 'sql', '--table', 'public.Stock'));
}

/** Compiles the project, and runs it on a row of the database. */
async function play(project: PackedProject, { url, pool }: OwnDatabase): Promise<unknown> {
  expect(await project.run(project.path('node_modules/typescript/bin/tsc'))).toBe('');
  await pool.query(AT_COMMIT);
  const { rows } = await pool.query(`INSERT INTO "Stock" (product, quantity) VALUES ('mug', 50) RETURNING id`);
  const env = { DATABASE_URL: url, REDIS_URL: inject('redis').url ?? '', STOCK_ID: String(rows[0]?.id) };
  const said: unknown = JSON.parse(await project.runWith(env, project.path('dist/main.js')));
  const { rows: after } = await pool.query('SELECT quantity, fence > 0 AS fenced FROM "Stock"');
  return { ...(said as object), after };
}

/** What `play` of the scenario has said, with so many left. */
const said = (left: number, also: object) => ({
  result: 'of the transaction',
  thrown: true,
  // The first one was the lock's, and has committed.
  'two transactions': 'HookFailedError HOOK_FAILED',
  none: 'TransactionAbortedError TRANSACTION_ABORTED',
  'beside, read': left,
  'beside, written': expect.stringContaining('INSIDE_TRANSACTION'),
  'COMMIT refused': 'TransactionAbortedError TRANSACTION_ABORTED',
  left,
  warnings: [],
  after: [{ quantity: left, fenced: true }],
  ...also,
});

describeWithShop('on `locks.pool`, installed from the registry and the tarball', () => {
  test.each(['typeorm', 'mikro-orm', 'knex'])(
    'the transaction of %s is that of the lock, and is the only one',
    async (name) => {
      await using database = await createDatabase();
      const project = await projectOf(name);
      await database.pool.query(TABLE);
      await fence(project, database);
      expect(await play(project, database)).toEqual(said(30, { nested: 30, streamed: 1 }));
    },
    LONG,
  );

  test(
    'the transaction of Prisma 8 is that of the lock, and `db update` and `db verify` leave the fence alone',
    async () => {
      await using database = await createDatabase();
      const project = await projectOf('prisma-8');
      const env = { DATABASE_URL: database.url };
      const does = async (mode: string, contract: string): Promise<unknown> =>
        JSON.parse(await project.runWith(env, project.path('setup.ts'), `src/${contract}.prisma`, mode));
      expect(await does('apply', 'contract')).toEqual(['table.Stock', 'unique.Stock.Stock_product_key']);
      await fence(project, database);
      expect(await play(project, database)).toEqual(said(29, {}));

      expect(await does('verify', 'contract')).toEqual([]);
      expect(await does('plan', 'contract')).toEqual([]);
      expect(await does('apply', 'wider')).toEqual(['column.public.Stock.shelf']);
      const { rows } = await database.pool.query(
        `SELECT tgname FROM pg_trigger WHERE tgrelid = '"Stock"'::regclass AND tgname LIKE '%fenced_lock%'`,
      );
      expect(rows).toHaveLength(2);
      // Not in the contract: the column is dropped, if somebody consents.
      expect(await does('plan', 'unfenced')).toContain('dropColumn.Stock.fence');
    },
    LONG,
  );
});
