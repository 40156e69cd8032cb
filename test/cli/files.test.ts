import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { write } from '../../src/cli/project/changes.js';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase } from './database.js';
import { project, ROOT } from './project.js';

const SCHEMA = 'datasource db {\n  provider = "postgresql"\n}\n\nmodel Stock {\n  id Int @id\n}\n';
const OBJECTS = readFileSync(join(ROOT, 'prisma/migrations/20261101000000_fenced_lock/migration.sql'), 'utf8');
const shop = () => project({ 'prisma/schema.prisma': SCHEMA });

describe('init', () => {
  test('writes one migration with the objects of the package, and the lock file of a new folder', async () => {
    const fresh = shop();
    expect(await fresh.run('init')).toMatchObject({ code: 0, err: '' });
    expect(fresh.files()).toEqual({
      'prisma/schema.prisma': SCHEMA,
      'prisma/migrations/20261120100000_fenced_lock/migration.sql': OBJECTS,
      'prisma/migrations/migration_lock.toml': expect.stringContaining('provider = "postgresql"'),
    });
  });

  test('its migration comes after all others, also where the clock is behind theirs', async () => {
    const fresh = shop();
    fresh.write('prisma/migrations/20270228235959_tomorrow/migration.sql', 'SELECT 1;\n');
    await fresh.run('init');
    expect(fresh.migration().name).toBe('20270228235960_fenced_lock');
  });
});

describe('all or nothing', () => {
  test.each([
    ['--dry-run shows what would be written', ['--dry-run'], 0],
    ['without the objects no guard is written', [], 1],
  ])('%s, and nothing is', async (_, args, code) => {
    const fresh = shop();
    expect(await fresh.run('add-fence', 'Stock', ...args)).toMatchObject({ code });
    expect(fresh.files()).toEqual({ 'prisma/schema.prisma': SCHEMA });
  });

  test('where one file cannot be replaced, those that were are put back', async () => {
    const fresh = shop();
    fresh.write('taken/by/a/folder', '');
    const before = fresh.files();
    const changes = [
      { path: fresh.path('prisma/schema.prisma'), before: SCHEMA, after: 'changed' },
      { path: fresh.path('prisma/migrations/1_new/migration.sql'), before: undefined, after: 'new' },
      { path: fresh.path('taken/by'), before: undefined, after: 'never' },
    ];
    await expect(write(changes)).rejects.toThrow(/^Nothing was written: /);
    expect(fresh.files()).toEqual(before);
  });

  test('with --database-url nothing is built on a history that has failed', async () => {
    await using database = await createDatabase();
    const fresh = shop();
    fresh.write('prisma/migrations/20260101000000_first/migration.sql', 'SELECT 1;\n');
    await applyMigrations(database.url, { dir: fresh.path('prisma/migrations') });
    await database.pool.query('UPDATE _prisma_migrations SET finished_at = NULL');
    const before = fresh.files();
    const { code, err } = await fresh.run('init', '--database-url', database.url);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('20260101000000_first failed in ') });
    expect(err).toContain('npx prisma migrate resolve --rolled-back 20260101000000_first, then');
    expect(err).not.toContain('://');
    expect(fresh.files()).toEqual(before);
    await database.pool.query('UPDATE _prisma_migrations SET finished_at = now()');
    expect(await fresh.run('init', '--database-url', database.url)).toMatchObject({ code: 0 });
  });
});

describe('upgrade', () => {
  const objects = 'prisma/migrations/20261120100000_fenced_lock/migration.sql';
  const ofVersion = async (version: number) => {
    const fresh = shop();
    await fresh.run('init');
    fresh.write(objects, OBJECTS.replace(/objects \d+';$/m, `objects ${version}';`));
    return fresh;
  };

  test('brings the whole script as a new migration, and edits none', async () => {
    const fresh = await ofVersion(1);
    const before = fresh.files();
    expect(await fresh.run('upgrade')).toMatchObject({ code: 0 });
    expect(fresh.files()).toMatchObject(before);
    expect(fresh.migration()).toEqual({
      name: expect.stringMatching(/^20261120100001_fenced_lock_\d+$/),
      sql: OBJECTS,
    });
  });

  test.each([['upgrade'], ['init', '--role', 'web']])('%s refuses objects of a newer version', async (...args) => {
    const fresh = await ofVersion(99);
    expect(await fresh.run(...args)).toMatchObject({ code: 1, err: expect.stringContaining(': update the package.') });
  });
});
