import { promises as fs, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Kysely, PostgresDialect } from 'kysely';
import { FileMigrationProvider, Migrator } from 'kysely/migration';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../cli/database.js';
import { project } from '../cli/project.js';
import { blocks, folderFor } from './page.js';

const PAGE = 'docs/guides/migrations-without-prisma.md';
const MIGRATION = blocks(PAGE).find((text) => text.includes("from 'kysely'")) ?? '';
const COMMANDS = blocks(PAGE, 'sh').flatMap((text) => [
  ...text.matchAll(/^npx fenced-lock (.*) > migrations\/(.*)$/gm),
]);

describe("Migrations without Prisma: Kysely's migrator", () => {
  test('applies what the page says, and takes the fence away again', async () => {
    await using database = await createDatabase();
    const { folder, remove } = folderFor('kysely');
    const home = process.cwd();
    process.chdir(folder);
    onTestFinished(() => {
      process.chdir(home);
      remove();
    });
    const migrations = path.join(folder, 'migrations');
    mkdirSync(migrations);
    for (const [, args = '', file = ''] of COMMANDS) {
      const { code, out } = await project().run(...args.split(' '));
      expect(code).toBe(0);
      writeFileSync(path.join(migrations, file), out);
    }
    writeFileSync(path.join(migrations, '2026_12_01_fenced_lock.ts'), MIGRATION);
    await database.pool.query('CREATE TABLE stock (id int PRIMARY KEY, quantity int NOT NULL)');
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: database.pool }) });
    const provider = new FileMigrationProvider({
      fs,
      path,
      migrationFolder: migrations,
      import: (file) => import(file),
    });
    const migrator = new Migrator({ db, provider });
    const fenced = async () => {
      const guards = await database.pool.query('SELECT table_name, fence_column FROM fenced_lock.guards()');
      const columns = await database.pool.query(`SELECT * FROM stock`);
      return { guards: guards.rows, columns: columns.fields.map(({ name }) => name) };
    };
    expect(await migrator.migrateToLatest()).toMatchObject({ results: [{ status: 'Success' }] });
    expect(await fenced()).toEqual({
      guards: [{ table_name: 'stock', fence_column: 'fence' }],
      columns: ['id', 'quantity', 'fence'],
    });
    expect(await migrator.migrateDown()).toMatchObject({ results: [{ status: 'Success' }] });
    expect(await fenced()).toEqual({ guards: [], columns: ['id', 'quantity'] });
  });
});
