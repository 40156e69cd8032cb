import { describe, expect, test } from 'vitest';
import { createDatabase, type OwnDatabase } from './database.js';
import { findings, notOk } from './patient.js';
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

const shop = (fence = FENCE) => project({ 'prisma/schema.prisma': SCHEMA(fence) });

/** `prisma db push`. */
async function push(here: Project, { url }: OwnDatabase): Promise<number> {
  const engine = await schemaEngine(url, readSchema(here.path('prisma')));
  try {
    return await engine.push();
  } finally {
    await engine.close();
  }
}

/** `fenced-lock sql | prisma db execute --stdin`: the engine sends what it is given as it is. */
async function pipe(here: Project, { pool }: OwnDatabase, ...args: string[]): Promise<void> {
  const { code, out } = await here.run('sql', ...args);
  expect(code).toBe(0);
  await pool.query(out);
}

const doctor = (here: Project, { url }: OwnDatabase) => here.run('doctor', '--json', '--database-url', url);

async function guards({ pool }: OwnDatabase): Promise<unknown[]> {
  const { rows } = await pool.query(
    `SELECT tgrelid::regclass::text AS table, split_part(encode(tgargs, 'escape'), '\\000', 2) AS policy
     FROM pg_trigger WHERE tgname = 'zzz_fenced_lock_guard' ORDER BY 1`,
  );
  return rows;
}

describe('a project that uses `prisma db push`', () => {
  test('pushes, applies what `fenced-lock sql` writes, and is healthy; a second round changes nothing', async () => {
    await using database = await createDatabase();
    const here = shop();
    expect(await push(here, database)).toBeGreaterThan(0);
    await pipe(here, database);
    expect(notOk(await doctor(here, database))).toEqual([]);
    expect(await guards(database)).toEqual([{ table: '"Stock"', policy: 'allow' }]);
    expect(await push(here, database)).toBe(0);
    await pipe(here, database);
    expect(notOk(await doctor(here, database))).toEqual([]);
    expect(here.files()).toEqual({ 'prisma/schema.prisma': SCHEMA(FENCE) });
  });

  test('with rows in the table and in the other order: the column is made first, and the push finds it', async () => {
    await using database = await createDatabase();
    await push(shop(''), database);
    await database.pool.query('INSERT INTO "Stock" (id, quantity) VALUES (1, 10)');
    const here = shop();
    await pipe(here, database, '--guard', 'require');
    expect(await push(here, database)).toBe(0);
    expect((await database.pool.query('SELECT fence::int FROM "Stock"')).rows).toEqual([{ fence: 0 }]);
    expect(await guards(database)).toEqual([{ table: '"Stock"', policy: 'require' }]);
    await expect(database.pool.query('UPDATE "Stock" SET quantity = 9')).rejects.toMatchObject({ code: 'FL002' });
  });

  test('that has rows goes over to migrations as the page says: what is there is recorded, and nothing is lost', async () => {
    await using database = await createDatabase();
    const here = shop('');
    await push(here, database);
    await database.pool.query('INSERT INTO "Stock" (id, quantity) VALUES (1, 10)');
    const engine = await schemaEngine(database.url, readSchema(here.path('prisma')));
    const migrations = () => readMigrations(here.path('prisma/migrations'));
    try {
      here.write('prisma/migrations/0_init/migration.sql', await engine.fromNothing());
      here.write('prisma/migrations/migration_lock.toml', 'provider = "postgresql"\n');
      await engine.resolve(migrations(), '0_init');
      expect(await here.run('init')).toMatchObject({ code: 0, out: expect.not.stringContaining('P3005') });
      expect(await here.run('add-fence', 'Stock')).toMatchObject({
        code: 0,
        out: expect.not.stringContaining('P3005'),
      });
      expect(await engine.deploy(migrations())).toHaveLength(2);
      expect(notOk(await doctor(here, database))).toEqual([]);
      expect(await guards(database)).toEqual([{ table: '"Stock"', policy: 'allow' }]);
      expect((await database.pool.query('SELECT id, quantity, fence::int FROM "Stock"')).rows).toEqual([
        { id: 1, quantity: 10, fence: 0 },
      ]);
    } finally {
      await engine.close();
    }
  });

  test('is told by init and doctor that migrate deploy refuses its database, and what to do', async () => {
    await using database = await createDatabase();
    const here = shop('');
    await push(here, database);
    const { code, out } = await here.run('init');
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/P3005/) });
    expect(out).toContain(PIPE);
    expect(out).toContain('migrations.md#from-db-push-to-migrations');
    const engine = await schemaEngine(database.url, readSchema(here.path('prisma')));
    const deployed = engine.deploy(readMigrations(here.path('prisma/migrations')));
    await expect(deployed.finally(() => engine.close())).rejects.toThrow(/not empty/);
    const found = findings(await doctor(here, database));
    expect(found.find(({ check }) => check === 'migrations')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('P3005'),
      remedy: expect.stringContaining(PIPE),
    });
  });

  test('doctor says what is missing, and sends nobody to migrations that there are not', async () => {
    await using database = await createDatabase();
    const here = shop();
    const nothing = await doctor(here, database);
    expect(nothing.out).not.toContain('migrate');
    const remedy = `${PIPE}; to begin with migrations instead: npx fenced-lock init`;
    expect(notOk(nothing)).toMatchObject([{ check: 'objects', status: 'fault', remedy }]);
    await pipe(shop(''), database);
    await push(here, database);
    const half = await doctor(here, database);
    expect(half.out).not.toContain('migrate');
    expect(notOk(half)).toMatchObject([
      { check: 'guards', status: 'warning', message: expect.stringContaining('Stock: no guard'), remedy: PIPE },
    ]);
    await database.pool.query('ALTER TABLE "Stock" DROP COLUMN fence');
    expect(notOk(await doctor(here, database))).toContainEqual(
      expect.objectContaining({ check: 'fences', status: 'fault', remedy: `npx prisma db push, then ${PIPE}` }),
    );
  });
});

describe('fenced-lock sql', () => {
  test('goes by the guards and the roles of the migrations, where there are some', async () => {
    const here = shop('');
    await here.run('init', '--role', 'web');
    await here.run('add-fence', 'Stock', '--field', 'token', '--guard', 'prove');
    const { json } = await here.run('sql', '--json', '--role', 'worker');
    expect(json).toMatchObject({ command: 'sql', ok: true, models: ['Stock'] });
    expect(json['sql']).toContain(`fenced_lock.guard('token', 'prove')`);
    expect(json['sql']).toContain('GRANT USAGE ON SCHEMA fenced_lock TO "web", "worker";');
  });
});
