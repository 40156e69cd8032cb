import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { createDatabase, type OwnDatabase } from './database.js';
import { project } from './project.js';

const DATASOURCE = 'datasource db {\n  provider = "postgresql"\n}\n';
const shop = (models = 'model Stock {\n  id    Int    @id\n  fence BigInt @default(0)\n}\n') =>
  project({ 'prisma/schema.prisma': DATASOURCE + models });

describe('sql', () => {
  test.each([
    [['--guard', 'requier']],
    [['--role']],
    [['too-much']],
    [['--table', 'shop.public.stock']],
    [['--table', '']],
    [['--table', 'public."stock']],
    [['--table', 'stock', '--field', 'fence']],
  ])('with wrong usage it writes a script that fails: %j', async (args) => {
    await using database = await createDatabase();
    const { code, out, err } = await shop().run('sql', ...args);
    expect([code, err]).toEqual([2, expect.stringContaining('error: ')]);
    await expect(database.pool.query(out)).rejects.toThrow('fenced-lock sql has failed, and wrote no script');
  });

  test('several processes may apply it at the same time, with each statement by itself as psql sends them', async () => {
    await using database = await createDatabase();
    await database.pool.query('CREATE TABLE "Stock" (id int PRIMARY KEY)');
    const role = `sql_${randomUUID().replaceAll('-', '')}`;
    await database.pool.query(`CREATE ROLE ${role}`);
    const { out } = await shop().run('sql', '--role', role);
    const statements = apart(out);
    expect(statements.length).toBeGreaterThan(8);
    const apply = async () => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      try {
        for (const statement of statements) await client.query(statement);
      } finally {
        await client.end();
      }
    };
    try {
      for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 6 }, apply));
      expect((await database.pool.query('SELECT table_name FROM fenced_lock.guards()')).rows).toEqual([
        { table_name: 'Stock' },
      ]);
    } finally {
      await database.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });

  test('a table may have a name that would end each kind of quotes', async () => {
    const name = '$fenced_lock$$$\'"$a$';
    await using database = await createDatabase();
    await database.pool.query(
      `CREATE TABLE ${pg.escapeIdentifier(name)} (id int PRIMARY KEY); CREATE TABLE child () INHERITS (${pg.escapeIdentifier(name)})`,
    );
    const here = shop(`model A {\n  id Int @id\n\n  @@map(${JSON.stringify(name)})\n}\n`);
    for (const args of [['init'], ['add-fence', 'A']]) {
      expect(await here.run(...args)).toMatchObject({ code: 0 });
      await database.pool.query(here.migration().sql);
    }
    await database.pool.query((await here.run('sql')).out);
    const guarded = await database.pool.query('SELECT table_name FROM fenced_lock.guards() ORDER BY table_name');
    expect(guarded.rows).toEqual([{ table_name: name }, { table_name: 'child' }]);
    expect(await here.run('remove-fence', 'A')).toMatchObject({ code: 0 });
    await database.pool.query(here.migration().sql);
    expect((await database.pool.query('SELECT FROM fenced_lock.guards()')).rows).toEqual([]);
  });
});

describe('sql without a Prisma project', () => {
  const wanted = ['--table', 'public.stock', '--table', '"Dotted.Name"', '--column', 'turn', '--guard', 'require'];
  const TABLES = 'CREATE TABLE stock (id int PRIMARY KEY); CREATE TABLE "Dotted.Name" (id int PRIMARY KEY);';
  const GUARDED = [
    { table_name: 'Dotted.Name', fence_column: 'turn' },
    { table_name: 'stock', fence_column: 'turn' },
  ];
  const guards = async ({ pool }: OwnDatabase) =>
    (await pool.query('SELECT table_name, fence_column FROM fenced_lock.guards() ORDER BY table_name')).rows;

  test('prints the objects, fences and guards of tables for the transaction of another tool, and takes the fences away', async () => {
    await using database = await createDatabase();
    const nowhere = project();
    const { code, out, err } = await nowhere.run('sql', ...wanted);
    expect([code, err]).toEqual([0, 'fenced-lock: The objects, and the fence of public.stock, Dotted.Name.\n']);
    const down = await nowhere.run('sql', '--down', ...wanted.slice(0, -2));
    const session = await database.pool.connect();
    try {
      await session.query(`BEGIN; ${TABLES}`);
      await session.query(out);
      await session.query(out);
      // Migrations behind it, in the same transaction, have no limits of ours.
      const { rows } = await session.query(
        `SELECT current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS statement`,
      );
      expect(rows).toEqual([{ lock: '0', statement: '0' }]);
      await session.query('ROLLBACK');
      expect((await session.query(`SELECT to_regnamespace('fenced_lock') AS there`)).rows).toEqual([{ there: null }]);
      await session.query(`BEGIN; ${TABLES} ${out} COMMIT`);
      expect(await guards(database)).toEqual(GUARDED);
      await session.query(`BEGIN; ${down.out} COMMIT`);
    } finally {
      session.release();
    }
    expect(await guards(database)).toEqual([]);
    const { rows } = await database.pool.query(`SELECT FROM pg_attribute WHERE attname = 'turn'`);
    expect(rows).toEqual([]);
  });

  test('without --table it prints the objects alone, and says so', async () => {
    await using database = await createDatabase();
    const { code, out, err } = await project().run('sql');
    expect([code, err]).toEqual([0, expect.stringContaining('no Prisma schema is here, and no --table')]);
    await database.pool.query(out);
    expect(await guards(database)).toEqual([]);
  });

  test('where a Prisma config is, a schema that is not found is an error', async () => {
    const { code, out, err } = await project({ 'prisma.config.ts': 'export default {};' }).run('sql');
    expect([code, out, err]).toEqual([
      1,
      expect.stringContaining('RAISE'),
      expect.stringContaining('prisma.config.ts'),
    ]);
  });

  test('--down without a table, and with a policy, is wrong usage', async () => {
    expect((await project().run('sql', '--down')).err).toContain('name them by --table');
    expect((await project().run('sql', '--down', ...wanted)).code).toBe(2);
  });
});

/** The statements of a script, as psql sends them: it ends one at a semicolon that is not in quotes. */
function apart(script: string): string[] {
  const parts = script.match(/(?:--[^\n]*|\$(\w*)\$[\s\S]*?\$\1\$|'[^']*'|"[^"]*"|[^;])+;/g) ?? [];
  return parts.map((statement) => statement.trim());
}
