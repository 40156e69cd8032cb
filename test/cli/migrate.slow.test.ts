import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { packagedScript } from '../../src/cli/migrations/packaged.js';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { notOk } from './patient.js';
import { type Project, project } from './project.js';
import { readMigrations, readSchema, schemaEngine } from './schema-engine.js';

const SCHEMA = (fence = '') => `datasource db {
  provider = "postgresql"
}

model Stock {
  id       Int @id
  quantity Int
${fence}}

model Order {
  id Int @id
}
`;
const FENCE = '  fence    BigInt @default(0)\n';
const PIPE = 'npx fenced-lock sql | npx prisma db execute --stdin';
const MIGRATIONS = 'prisma/migrations';

/** Prisma's own engine in a project, for one thing. */
async function prisma<T>(
  here: Project,
  { url }: OwnDatabase,
  work: (
    engine: Awaited<ReturnType<typeof schemaEngine>>,
    migrations: () => ReturnType<typeof readMigrations>,
  ) => Promise<T>,
  folder = 'prisma',
): Promise<T> {
  const engine = await schemaEngine(url, readSchema(here.path(folder)));
  try {
    return await work(engine, () => readMigrations(here.path(folder, 'migrations')));
  } finally {
    await engine.close();
  }
}
const push = (here: Project, to: OwnDatabase) => prisma(here, to, (engine) => engine.push());
const deploy = (here: Project, to: OwnDatabase) =>
  prisma(here, to, (engine, migrations) => engine.deploy(migrations()));
/** `prisma migrate dev` asks for no reset, and has nothing to write. */
const isAtRest = (here: Project, at: OwnDatabase, folder?: string) =>
  prisma(
    here,
    at,
    async (engine, migrations) => {
      expect((await engine.dev(migrations())).action).toEqual({ tag: 'createMigration' });
      expect(await engine.next(migrations())).toMatch(/^(-- This is an empty migration\.)?$/);
    },
    folder,
  );

/** `fenced-lock sql | prisma db execute --stdin`: the engine sends what it is given as it is. */
async function pipe(here: Project, { pool }: OwnDatabase, ...args: string[]): Promise<void> {
  const { code, out } = await here.run('sql', ...args);
  expect(code).toBe(0);
  await pool.query(out);
}
const faults = async (here: Project, { url }: OwnDatabase) =>
  notOk(await here.run('doctor', '--json', '--database-url', url));

async function guards({ pool }: OwnDatabase): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ table: string; policy: string }>(
    `SELECT tgrelid::regclass::text AS table, split_part(encode(tgargs, 'escape'), '\\000', 2) AS policy
     FROM pg_trigger WHERE tgname = 'zzz_fenced_lock_guard' ORDER BY 1`,
  );
  return Object.fromEntries(rows.map(({ table, policy }) => [table, policy]));
}

describe('the migrations that the command writes', () => {
  test('go through Prisma’s schema engine, which sees no drift; remove-fence leaves nothing behind', async () => {
    await using database = await createDatabase();
    const folder = 'prisma/schema';
    const here = project({
      [folder]: 'fixture:bookshop',
      [`${folder}/migrations/migration_lock.toml`]: 'provider = "postgresql"\n',
    });
    const baseline = await prisma(here, database, (engine) => engine.fromNothing(), folder);
    here.write(`${folder}/migrations/20260101000000_baseline/migration.sql`, baseline);
    const before = here.files();
    for (const args of [['init'], ['add-fence', 'Stock', 'Order', 'User', '--guard', 'require']]) {
      expect(await here.run(...args)).toMatchObject({ code: 0 });
    }
    expect(squawk(here.migration(`${folder}/migrations`).sql)).toBe('');
    await prisma(here, database, (engine, migrations) => engine.deploy(migrations()), folder);
    await isAtRest(here, database, folder);
    expect(await guards(database)).toEqual({ 'people.users': 'require', 'sales.orders': 'require', stock: 'require' });
    await here.run('remove-fence', 'Order', 'Stock', 'User');
    // It is what the user asked for, and its message says to deploy the application first.
    expect(squawk(here.migration(`${folder}/migrations`).sql, 'ban-drop-column')).toBe('');
    await prisma(here, database, (engine, migrations) => engine.deploy(migrations()), folder);
    await isAtRest(here, database, folder);
    expect(here.files()).toMatchObject(before);
    expect(await guards(database)).toEqual({});
    // It only makes what was not there, so nobody can be in its way, nor it in theirs.
    const { sql } = await packagedScript();
    expect(squawk(sql, 'require-lock-timeout', 'require-statement-timeout')).toBe('');
  });

  test('give up behind a long reader, let later readers through, and rewrite no row', async () => {
    await using database = await createDatabase();
    const here = project({ 'prisma/schema.prisma': SCHEMA() });
    await here.run('init');
    await here.run('add-fence', 'Stock');
    await database.pool.query(
      'CREATE TABLE "Stock" AS SELECT n AS id, 1 AS quantity FROM generate_series(1, 100000) AS n',
    );
    const apply = () => applyMigrations(database.url, { dir: here.path(MIGRATIONS) });
    const reader = await database.pool.connect();
    await reader.query('BEGIN; SELECT FROM "Stock" LIMIT 1');
    await expect(apply()).rejects.toThrow(/lock timeout/);
    await database.pool.query('SELECT 1 FROM "Stock" LIMIT 1');
    await reader.query('COMMIT');
    reader.release();
    const file = async () =>
      (await database.pool.query(`SELECT pg_relation_filenode('"Stock"') AS node, pg_relation_size('"Stock"')`)).rows;
    const before = await file();
    await apply();
    expect(await file()).toEqual(before);
    const { rowCount } = await database.pool.query('SELECT FROM "Stock" WHERE fence = 0');
    expect(rowCount).toBe(100_000);
  });

  test('go through reset, deploy and dev again and again, also where two branches ran init, and keep the tokens', async () => {
    await using database = await createDatabase();
    const here = project({ 'prisma/schema.prisma': SCHEMA() });
    here.write(
      `${MIGRATIONS}/20260101000000_tables/migration.sql`,
      await prisma(here, database, (engine) => engine.fromNothing()),
    );
    await here.run('init');
    await here.run('add-fence', 'Stock');
    expect(await deploy(here, database)).toHaveLength(3);
    await database.pool.query(`SELECT setval('fenced_lock.token', 42); INSERT INTO fenced_lock.admission
      (key, token, holder, born, turns, attempts, admitted_at)
      VALUES ('stock:1', 42, gen_random_uuid(), 0, 1, '{}', now())`);
    const kept = async () => {
      const sql =
        'SELECT s.last_value::int AS last, a.key, a.token::int FROM fenced_lock.token AS s, fenced_lock.admission AS a';
      expect((await database.pool.query(sql)).rows).toEqual([{ last: 42, key: 'stock:1', token: 42 }]);
      await isAtRest(here, database);
    };
    for (const other of ['20260102000000_fenced_lock', '20270101000000_fenced_lock']) {
      const ours = here.path(MIGRATIONS, '20261120100000_fenced_lock');
      cpSync(ours, here.path(MIGRATIONS, other), { recursive: true });
      expect(await deploy(here, database)).toEqual([other]);
      await kept();
    }
    for (let round = 0; round < 2; round++) {
      await prisma(here, database, (engine) => engine.reset());
      expect(await deploy(here, database)).toHaveLength(5);
      await kept();
    }
    // A restored dump of the tables alone has lost them.
    await database.pool.query('DROP SCHEMA fenced_lock CASCADE');
    const [{ remedy = '' } = {}] = await faults(here, database);
    await database.pool.query(here.read(/npx prisma db execute --file (\S+)/.exec(remedy)?.[1] ?? 'none'));
    for (const { remedy = '' } of await faults(here, database)) {
      await database.pool.query(remedy.replace(/^.*If nothing is left to deploy: /, ''));
    }
    expect(await faults(here, database)).toEqual([]);
  });
});

/** Prisma sends a migration as one text, so in one transaction. */
function squawk(sql: string, ...exclude: string[]): string {
  const program = createRequire(import.meta.url).resolve('squawk-cli/js/bin/squawk');
  const args = [
    '--reporter=gcc',
    '--assume-in-transaction',
    '--pg-version=14',
    ...exclude.map((rule) => `--exclude=${rule}`),
  ];
  const ran = spawnSync(process.execPath, [program, ...args], { input: sql, encoding: 'utf8' });
  if (ran.error) throw ran.error;
  return ran.status === 0 ? '' : ran.stdout + ran.stderr;
}

describe('a project that uses `prisma db push`', () => {
  const shop = (fence = FENCE) => project({ 'prisma/schema.prisma': SCHEMA(fence) });

  test('applies what `fenced-lock sql` writes, before or after the push, again and again, and is healthy', async () => {
    await using database = await createDatabase();
    await push(shop(''), database);
    await database.pool.query('INSERT INTO "Stock" (id, quantity) VALUES (1, 10)');
    const here = shop();
    await pipe(here, database, '--guard', 'require');
    expect((await database.pool.query('SELECT fence::int FROM "Stock"')).rows).toEqual([{ fence: 0 }]);
    await expect(database.pool.query('UPDATE "Stock" SET quantity = 9')).rejects.toMatchObject({ code: 'FL002' });
    for (let round = 0; round < 2; round++) {
      expect(await push(here, database)).toBe(0);
      await pipe(here, database);
      expect(await faults(here, database)).toEqual([]);
      expect(await guards(database)).toEqual({ '"Stock"': 'allow' });
    }
    expect(here.files()).toEqual({ 'prisma/schema.prisma': SCHEMA(FENCE) });
  });

  test('goes over to migrations as the page says: what is there is recorded, and nothing is lost', async () => {
    await using database = await createDatabase();
    const here = shop('');
    await push(here, database);
    await database.pool.query('INSERT INTO "Stock" (id, quantity) VALUES (1, 10)');
    await prisma(here, database, async (engine, migrations) => {
      here.write(`${MIGRATIONS}/0_init/migration.sql`, await engine.fromNothing());
      here.write(`${MIGRATIONS}/migration_lock.toml`, 'provider = "postgresql"\n');
      await engine.resolve(migrations(), '0_init');
    });
    for (const args of [['init'], ['add-fence', 'Stock']]) {
      expect(await here.run(...args)).toMatchObject({ code: 0, out: expect.not.stringContaining('P3005') });
    }
    expect(await deploy(here, database)).toHaveLength(2);
    expect(await faults(here, database)).toEqual([]);
    expect(await guards(database)).toEqual({ '"Stock"': 'allow' });
    const { rows } = await database.pool.query('SELECT id, quantity, fence::int FROM "Stock"');
    expect(rows).toEqual([{ id: 1, quantity: 10, fence: 0 }]);
  });

  test('is told by init and doctor that migrate deploy refuses its database, and what to do', async () => {
    await using database = await createDatabase();
    const here = shop('');
    await push(here, database);
    expect(await here.run('init')).toMatchObject({ code: 0, out: expect.stringContaining('P3005') });
    await expect(deploy(here, database)).rejects.toThrow(/not empty/);
    const [message, remedy] = ['P3005', PIPE].map((text) => expect.stringContaining(text));
    expect(await faults(here, database)).toContainEqual(
      expect.objectContaining({ check: 'migrations', message, remedy }),
    );
  });

  test('is told by doctor what is missing, and is sent to no migrations that there are not', async () => {
    await using database = await createDatabase();
    const here = shop();
    const remedy = `${PIPE}; to begin with migrations instead: npx fenced-lock init`;
    expect(await faults(here, database)).toMatchObject([{ check: 'objects', status: 'fault', remedy }]);
    await pipe(shop(''), database);
    await push(here, database);
    const half = await faults(here, database);
    expect(half).toMatchObject([{ check: 'guards', status: 'warning', remedy: PIPE }]);
    await database.pool.query('ALTER TABLE "Stock" DROP COLUMN fence');
    expect(await faults(here, database)).toContainEqual(
      expect.objectContaining({ check: 'fences', status: 'fault', remedy: `npx prisma db push, then ${PIPE}` }),
    );
  });
});

test('fenced-lock sql goes by the guards and the roles of the migrations, where there are some', async () => {
  const here = project({ 'prisma/schema.prisma': SCHEMA() });
  await here.run('init', '--role', 'web');
  await here.run('add-fence', 'Stock', '--field', 'token', '--guard', 'prove');
  const { json } = await here.run('sql', '--json', '--role', 'worker');
  expect(json).toMatchObject({ command: 'sql', ok: true, models: ['Stock'] });
  expect(json['sql']).toContain(`fenced_lock.guard('token', 'prove')`);
  expect(json['sql']).toContain('GRANT USAGE ON SCHEMA fenced_lock TO "web", "worker";');
});
