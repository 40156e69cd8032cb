import { randomUUID } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { applyMigrations, type PostgresServer, startPostgres } from '../support/servers/index.js';
import { count, withClient } from './sql.js';

let server: PostgresServer;
let url: string;
let dir: string;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

beforeEach(async () => {
  url = await server.createDatabase();
  dir = mkdtempSync(join(tmpdir(), 'fenced-lock-migrations-'));
  write('2_second', 'INSERT INTO stock VALUES (1); INSERT INTO stock VALUES (2);');
  write('1_first', 'CREATE TABLE stock (id int PRIMARY KEY);');
  writeFileSync(join(dir, 'migration_lock.toml'), 'provider = "postgresql"');
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(name: string, sql: string): void {
  mkdirSync(join(dir, name));
  writeFileSync(join(dir, name, 'migration.sql'), sql);
}

test('migrations are applied in the order of their names', async () => {
  expect(await applyMigrations(url, { dir })).toEqual(['1_first', '2_second']);
  expect(await count(url, 'stock')).toBe(2);
});

test('tables without a schema are made in that of the URL', async () => {
  const inShop = Object.assign(new URL(url), { search: '?schema=my shop' }).href;
  expect(await applyMigrations(inShop, { dir })).toEqual(['1_first', '2_second']);
  expect(await applyMigrations(inShop, { dir })).toEqual([]);
  expect(await count(url, '"my shop".stock')).toBe(2);
});

test('applied twice is a no-op', async () => {
  await applyMigrations(url, { dir });
  expect(await applyMigrations(url, { dir })).toEqual([]);
  expect(await count(url, 'stock')).toBe(2);
});

test('roles that they name are made where that is asked for, and else the error says what to do', async () => {
  const roles = [`app ${randomUUID()}`, `own"er ${randomUUID()}`].map((role) => `"${role.replaceAll('"', '""')}"`);
  write(
    '3_rights',
    `BEGIN; GRANT SELECT ON stock TO ${roles.join(', ')}; ALTER TABLE stock OWNER TO ${roles[1]}; COMMIT`,
  );
  await expect(applyMigrations(url, { dir })).rejects.toThrow(
    /3_rights failed: role "app .*" does not exist\. Create it/,
  );
  expect(await applyMigrations(url, { dir, makesRoles: true })).toEqual(['3_rights']);
});

test('two that apply them at once apply each of them once', async () => {
  const applied = await Promise.all([applyMigrations(url, { dir }), applyMigrations(url, { dir })]);
  expect(applied.flat()).toEqual(['1_first', '2_second']);
});

test('they are recorded as Prisma records them', async () => {
  await applyMigrations(url, { dir });
  const { rows } = await withClient(url, (client) =>
    client.query('SELECT * FROM _prisma_migrations ORDER BY migration_name'),
  );
  expect(rows[0]).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    // sha256sum of the file
    checksum: '8b2f313a4a3c7b1e24626cffa66128e35d62830651027c0d80aff7d5b3fa306c',
    finished_at: expect.any(Date),
    migration_name: '1_first',
    logs: null,
    rolled_back_at: null,
    started_at: expect.any(Date),
    applied_steps_count: 1,
  });
});

test('a migration that was changed after it was applied is an error', async () => {
  await applyMigrations(url, { dir });
  appendFileSync(join(dir, '1_first', 'migration.sql'), '-- later');
  await expect(applyMigrations(url, { dir })).rejects.toThrow('1_first was changed');
});

test('one may have a statement that refuses to run in a transaction, if it has no other', async () => {
  write('3_third', 'CREATE INDEX CONCURRENTLY by_id ON stock (id);');
  expect(await applyMigrations(url, { dir })).toEqual(['1_first', '2_second', '3_third']);
});

test('one that fails leaves nothing of itself, and those before it stay', async () => {
  write('3_third', 'INSERT INTO stock VALUES (3); INSERT INTO stock VALUES (3);');
  await expect(applyMigrations(url, { dir })).rejects.toThrow('3_third failed: duplicate key');
  expect(await count(url, 'stock')).toBe(2);
  expect(await count(url, '_prisma_migrations')).toBe(2);
});
