import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { project } from './project.js';

describe('gc', () => {
  let database: OwnDatabase;
  beforeAll(async () => {
    database = await createDatabase();
    await applyMigrations(database.url);
  });
  afterAll(() => database?.[Symbol.asyncDispose]());

  /** Rows of keys that were last admitted so many hours ago. */
  async function admitted(...hours: number[]): Promise<void> {
    await database.pool.query('TRUNCATE fenced_lock.admission');
    await database.pool.query(
      `INSERT INTO fenced_lock.admission (key, token, holder, born, turns, attempts, admitted_at)
       SELECT 'key:' || n || ':' || h, n, $1, 0, 1, '{}', now() - make_interval(hours => h)
       FROM unnest($2::int[]) WITH ORDINALITY AS hours(h, n)`,
      [randomUUID(), hours],
    );
  }
  /** Marks of jobs that ran so many days ago. */
  const ran = (...days: number[]) =>
    database.pool.query(
      `INSERT INTO fenced_lock.last_run SELECT 'job:' || d, now() - make_interval(days => d) FROM unnest($1::int[]) AS d`,
      [days],
    );

  const keysOf = async (table: string) =>
    (await database.pool.query<{ key: string }>(`SELECT key FROM fenced_lock.${table} ORDER BY 1`)).rows.map(
      ({ key }) => key,
    );
  const gc = (...args: string[]) => project({}, { DATABASE_URL: database.url }).run('gc', '--json', ...args);

  test('deletes what has been idle for the time, at least a day, in pages, and nothing younger', async () => {
    await admitted(0, 23, 25, 48);
    expect(await gc()).toMatchObject({ code: 0, json: { rows: 2 } });
    expect(await keysOf('admission')).toEqual(['key:1:0', 'key:2:23']);
    await admitted(...Array.from({ length: 12_345 }, (_, n) => (n % 3 === 0 ? 1 : 72)));
    expect(await gc('--older-than', '2d')).toMatchObject({ json: { rows: 8_230 } });
    expect(await keysOf('admission')).toHaveLength(4_115);
  });

  test('passes over a row that a transaction has, without waiting', async () => {
    await admitted(48, 48);
    const holder = await database.pool.connect();
    await holder.query('BEGIN');
    await holder.query(`UPDATE fenced_lock.admission SET admitted_at = now() WHERE key = 'key:1:48'`);
    expect(await gc()).toMatchObject({ json: { rows: 1 } });
    await holder.query('COMMIT');
    holder.release();
    expect(await keysOf('admission')).toEqual(['key:1:48']);
  });

  test('deletes the marks that are farther from now than any interval; with --run that of one job alone', async () => {
    await admitted(48);
    await ran(26, 24, 1, -1, -24, -26);
    expect(await gc('--run', 'job:1', '--dry-run')).toMatchObject({ json: { rows: 0, runs: 1 } });
    expect(await gc('--run', 'job:1')).toMatchObject({ json: { rows: 0, runs: 1 } });
    expect(await gc('--dry-run')).toMatchObject({ json: { rows: 1, runs: 2 } });
    expect(await gc()).toMatchObject({ json: { rows: 1, runs: 2 } });
    expect(await keysOf('last_run')).toEqual(['job:-1', 'job:-24', 'job:24']);
  });

  test('a role that does not own the table is told so, and no URL is shown', async () => {
    const role = `gc_${randomUUID().replaceAll('-', '')}`;
    await database.pool.query(
      `CREATE ROLE ${role} LOGIN PASSWORD 'secret-of-gc'; GRANT CONNECT ON DATABASE ${database.name} TO ${role}`,
    );
    const url = Object.assign(new URL(database.url), { username: role, password: 'secret-of-gc' });
    const { code, err } = await gc('--database-url', url.href);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('the role that owns the schema') });
    expect(err).not.toMatch(/secret-of-gc|:\/\//);
    await database.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
});
