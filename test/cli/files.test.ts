import { spawnSync } from 'node:child_process';
import { chmodSync, lstatSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
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

  test('a schema that is a link stays one, and keeps its mode', async () => {
    const fresh = shop();
    fresh.write('shared/schema.prisma', SCHEMA);
    chmodSync(fresh.path('shared/schema.prisma'), 0o640);
    rmSync(fresh.path('prisma/schema.prisma'));
    symlinkSync('../shared/schema.prisma', fresh.path('prisma/schema.prisma'));
    await fresh.run('add-fence', 'Stock', '--guard', 'none');
    expect(lstatSync(fresh.path('prisma/schema.prisma')).isSymbolicLink()).toBe(true);
    expect(fresh.read('shared/schema.prisma')).toContain('fence BigInt @default(0)');
    expect(lstatSync(fresh.path('shared/schema.prisma')).mode & 0o777).toBe(0o640);
  });

  test('a folder that the user may not write to is a sentence, and nothing is half-written', async () => {
    const fresh = shop();
    await fresh.run('init');
    const before = fresh.files();
    for (const path of ['.', 'prisma', 'prisma/migrations']) chmodSync(fresh.path(path), 0o777);
    // The schema could be replaced, and the migration could not be made.
    chmodSync(fresh.path('prisma/migrations'), 0o555);
    const ran = asNobody(fresh.folder, 'add-fence', 'Stock');
    expect(ran).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^fenced-lock: Nothing was written: EACCES/),
    });
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

/** The command as a process of a user who owns nothing. */
function asNobody(cwd: string, ...args: string[]) {
  const root = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const tsx = createRequire(import.meta.url).resolve('tsx');
  const env = { PATH: process.env['PATH'], TSX_DISABLE_CACHE: '1' };
  return spawnSync(process.execPath, ['--import', tsx, join(ROOT, 'src/cli/main.ts'), ...args], {
    cwd,
    env,
    encoding: 'utf8',
    ...root,
  });
}

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
