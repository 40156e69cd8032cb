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

  async function left(): Promise<number> {
    const { rows } = await database.pool.query<{ rows: number }>(
      'SELECT count(*)::int AS rows FROM fenced_lock.admission',
    );
    return rows[0]?.rows ?? -1;
  }

  const gc = (...args: string[]) => project({}, { DATABASE_URL: database.url }).run('gc', ...args);

  test('deletes what has been idle for more than a day, and nothing younger', async () => {
    await admitted(0, 1, 23, 25, 48, 1_000);
    expect(await gc('--json')).toMatchObject({ code: 0, json: { command: 'gc', ok: true, rows: 3 } });
    expect(await left()).toBe(3);
  });

  test('deletes thousands of rows in pages, and says how many', async () => {
    await admitted(...Array.from({ length: 12_345 }, (_, n) => (n % 3 === 0 ? 1 : 72)));
    const { out } = await gc('--older-than', '2d');
    expect(out).toContain('Deleted 8230 rows of keys idle for more than 2d');
    expect(await left()).toBe(4_115);
  });

  test('passes over a row that a transaction has, without waiting', async () => {
    await admitted(48, 48);
    const holder = await database.pool.connect();
    await holder.query('BEGIN');
    await holder.query(`UPDATE fenced_lock.admission SET admitted_at = now() WHERE key = 'key:1:48'`);
    expect(await gc('--json')).toMatchObject({ json: { rows: 1 } });
    await holder.query('COMMIT');
    holder.release();
    expect(await left()).toBe(1);
  });

  /** Marks of jobs that ran so many days ago. */
  const ran = (...days: number[]) =>
    database.pool.query(
      `INSERT INTO fenced_lock.last_run SELECT 'job:' || d, now() - make_interval(days => d) FROM unnest($1::int[]) AS d`,
      [days],
    );

  async function marks(): Promise<string[]> {
    const { rows } = await database.pool.query<{ key: string }>('SELECT key FROM fenced_lock.last_run ORDER BY ran_at');
    return rows.map(({ key }) => key);
  }

  test('with --run it forgets the last run of one job, and nothing else', async () => {
    await admitted(48);
    await ran(1, 2);
    expect((await gc('--run', 'job:1', '--dry-run')).out).toMatch(/^Would forget the last run of job:1 in /);
    expect(await marks()).toEqual(['job:2', 'job:1']);
    expect(await gc('--run', 'job:1', '--json')).toMatchObject({ code: 0, json: { rows: 0, runs: 1 } });
    expect(await marks()).toEqual(['job:2']);
    expect((await gc('--run', 'job:1')).out).toMatch(/^There is no mark of the last run of job:1 in /);
    expect(await left()).toBe(1);
    await database.pool.query('TRUNCATE fenced_lock.last_run');
  });

  test('deletes the marks that are farther from now than any interval, and no other', async () => {
    await ran(26, 24, 1, -1, 99, -24, -26);
    expect(await gc('--dry-run', '--json')).toMatchObject({ json: { runs: 3 } });
    // The keys are those of a day, and the marks are not.
    expect((await gc('--dry-run')).out).toMatch(
      /idle for more than 1d, and 3 of jobs that have not run for 25 days, in /,
    );
    expect(await gc('--json')).toMatchObject({ json: { runs: 3 } });
    expect(await marks()).toEqual(['job:24', 'job:1', 'job:-1', 'job:-24']);
  });

  test.each(['1h', '23h', '0d', '-1d', 'soon', '1'])(
    '--older-than %s is wrong usage: a day is the least',
    async (time) => {
      await admitted(48);
      expect(await gc(`--older-than=${time}`)).toMatchObject({ code: 2, err: expect.stringContaining('at least 1d') });
      expect(await left()).toBe(1);
    },
  );

  test('a role that does not own the table is told so, and no URL is shown', async () => {
    const role = `gc_${randomUUID().replaceAll('-', '')}`;
    await database.pool.query(
      `CREATE ROLE ${role} LOGIN PASSWORD 'secret-of-gc'; GRANT CONNECT ON DATABASE ${database.name} TO ${role}`,
    );
    const url = new URL(database.url);
    [url.username, url.password] = [role, 'secret-of-gc'];
    const { code, err } = await gc('--database-url', url.href);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('the role that owns the schema') });
    expect(err).not.toMatch(/secret-of-gc|:\/\//);
    await database.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
});
