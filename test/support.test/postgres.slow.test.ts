import { existsSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { NotSupervised, type PostgresServer, startPostgres } from '../support/servers/index.js';
import { count, withClient } from './sql.js';

describe('startPostgres', () => {
  let server: PostgresServer;
  let url: string;

  beforeAll(async () => {
    vi.stubEnv('DATABASE_URL', '');
    server = await startPostgres();
  });
  beforeEach(async () => {
    url = await server.createDatabase();
    await withClient(url, (client) =>
      client.query('CREATE TABLE stock (id int PRIMARY KEY); CREATE UNLOGGED TABLE memo (id int)'),
    );
  });
  afterAll(() => server.stop());

  const insert = (table = 'stock', id = 1) =>
    withClient(url, (client) => client.query(`INSERT INTO ${table} VALUES (${id})`));

  test('keeps committed rows through a crash, and no others', async () => {
    await insert();
    await withClient(url, async (client) => {
      await client.query('BEGIN');
      await client.query('INSERT INTO stock VALUES (2)');
      await server.killHard();
    });
    await server.start();
    expect(await count(url, 'stock')).toBe(1);
  });

  test('a crash and an immediate restart empty an unlogged table', async () => {
    await insert('memo');
    await server.restart();
    expect(await count(url, 'memo')).toBe(0);
    await insert('memo');
    await server.killHard();
    await server.start();
    expect(await count(url, 'memo')).toBe(0);
  });

  test('frozen it answers nobody, not even on open connections; thawed it goes on', async () => {
    await withClient(url, async (client) => {
      await client.query('SELECT 1');
      server.freeze();
      const answer = client.query('SELECT 2 AS two').then(({ rows }) => rows);
      const silence = new Promise((resolve) => setTimeout(resolve, 200, 'silence'));
      expect(await Promise.race([answer, silence])).toBe('silence');
      server.thaw();
      expect(await answer).toEqual([{ two: 2 }]);
    });
  });

  test('a setting that it does not know is an error with the words of the log', async () => {
    await expect(startPostgres({ settings: { no_such_thing: '1' } })).rejects.toThrow(
      'unrecognized configuration parameter',
    );
  });

  test('stopped, also twice and frozen, it leaves no process and no directory', async () => {
    const other = await startPostgres();
    const { pid, dir } = other;
    other.freeze();
    await Promise.all([other.stop(), other.stop()]);
    await other.stop();
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    expect(existsSync(dir ?? '')).toBe(false);
    await expect(other.start()).rejects.toThrow('stopped for good');
  });

  test('DATABASE_URL wins: a fresh database there, dropped by stop, and no power over the server', async () => {
    vi.stubEnv('DATABASE_URL', server.url);
    const external = await startPostgres().finally(() => vi.stubEnv('DATABASE_URL', ''));
    expect(external).toMatchObject({
      kind: 'DATABASE_URL',
      supervised: false,
      port: server.port,
      version: server.version,
    });
    await expect(external.killHard()).rejects.toThrow(NotSupervised);
    expect(() => external.freeze()).toThrow('not supervised');
    expect(() => external.pid).toThrow(NotSupervised);
    expect(await count(external.url, "pg_tables WHERE schemaname = 'public'")).toBe(0);
    await external.stop();
    await external.stop();
    await expect(count(external.url, 'pg_tables')).rejects.toThrow('does not exist');
  });
});
