import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { createDatabase } from './database.js';
import { findings, notOk, Patient } from './patient.js';
import { project, ROOT } from './project.js';
import { rewritingProxy } from './rewriting-proxy.js';

const admission = `INSERT INTO fenced_lock.admission (key, token, holder, born, turns, attempts, admitted_at)
    VALUES ('k', 5000, gen_random_uuid(), 0, 1, '{}', now());`;

const MAY_CONNECT = 'GRANT CONNECT ON DATABASE $DATABASE TO $ROLE';

describe('doctor', () => {
  const patient = new Patient();

  test('finds nothing in a healthy database', async () => {
    const ran = await patient.doctor(patient.url);
    expect(ran).toMatchObject({ code: 0, json: { ok: true, faults: 0, warnings: 0 } });
  });

  test('finds a pooler in statement mode', async () => {
    await using proxy = await rewritingProxy(patient.url, { statementMode: true });
    const ran = await patient.doctor(proxy.url);
    expect(notOk(ran)).toMatchObject([{ check: 'pooler', status: 'fault' }]);
    expect(ran.code).toBe(1);
  });

  test('finds a PostgreSQL that is too old', async () => {
    await using database = await createDatabase();
    const { rows } = await database.pool.query<{ number: string }>(
      `SELECT current_setting('server_version_num') AS number`,
    );
    const [{ number } = { number: '' }] = rows;
    await using proxy = await rewritingProxy(patient.url, { rewrite: [number, '130009'] });
    const ran = await patient.doctor(proxy.url);
    expect(notOk(ran)).toMatchObject([
      { check: 'version', status: 'fault', message: 'PostgreSQL 13 is older than 14.' },
    ]);
  });

  test('finds fenced_lock among the schemas that Prisma treats as its own', async () => {
    const listing = project({
      'prisma/schema.prisma': 'datasource db {\n  provider = "postgresql"\n  schemas  = ["public", "fenced_lock"]\n}\n',
    });
    const ran = await listing.run('doctor', '--json', '--database-url', patient.url);
    const message =
      'The datasource lists fenced_lock under `schemas`: prisma migrate dev and db push would drop its tables.';
    expect(notOk(ran)).toContainEqual(expect.objectContaining({ check: 'schemas', status: 'fault', message }));
    expect(ran.code).toBe(1);
  });

  test('finds a guard that is left on a table whose field, or column, is gone', async () => {
    await using database = await patient.ill('SELECT 1');
    const look = async (model: string) => {
      const at = project({ 'prisma/schema.prisma': `datasource db {\n  provider = "postgresql"\n}\n\n${model}` });
      const found = findings(await at.run('doctor', '--json', '--database-url', database.url));
      return found.find(({ check, message }) => check === 'guards left' && /Stock|No guard/.test(message));
    };
    const [forgotten, other] = ['model Stock {\n  id Int @id\n}\n', 'model Bill {\n  id Int @id\n}\n'];
    const message = expect.stringMatching(/^Stock: public."Stock" has a guard, .* no field for its column "fence"/);
    expect(await look(forgotten)).toMatchObject({ status: 'warning', message });
    // Another project's table is none of this one's business.
    expect(await look(other)).toMatchObject({ status: 'ok' });
    await database.pool.query('ALTER TABLE "Stock" DROP COLUMN fence');
    const gone = expect.stringContaining('its column "fence" is gone: each write fails.');
    const remedy = expect.stringContaining('npx fenced-lock remove-fence Stock');
    expect(await look(forgotten)).toMatchObject({ status: 'fault', message: gone, remedy });
    expect(await look(other)).toMatchObject({ status: 'fault', message: gone });
  });

  test('finds a fence that no lock has set, sets nothing to it, and the statements of the page lower it', async () => {
    const wild = 2n ** 63n - 1n;
    await using database = await patient.ill(
      `SET session_replication_role = replica; INSERT INTO "Stock" (id, fence) VALUES (1, ${wild}), (2, 1);
       SELECT nextval('fenced_lock.token')`,
    );
    const message = expect.stringContaining(`token ${wild} is in use in "public"."Stock", which no lock has drawn`);
    const found = [expect.objectContaining({ check: 'sequence position', status: 'fault', message })];
    expect(notOk(await patient.doctor(database.url, '--fix'))).toEqual(found);
    const page = readFileSync(`${ROOT}docs/operators.md`, 'utf8').split('## A fence that no lock has set')[1] ?? '';
    await database.pool.query(/```sql\n(.*?)```/s.exec(page)?.[1] ?? '');
    expect(notOk(await patient.doctor(database.url))).toEqual([]);
    const { rows } = await database.pool.query('SELECT id, fence::int FROM "Stock" ORDER BY id');
    expect(rows).toEqual([
      { id: 1, fence: 0 },
      { id: 2, fence: 1 },
    ]);
  });

  test('--fix sets the sequence forward, never back, and begins an epoch', async () => {
    await using database = await patient.ill(
      `${admission} ALTER SEQUENCE fenced_lock.token CACHE 5 CYCLE; DELETE FROM fenced_lock.epoch;`,
    );
    const fixed = await patient.doctor(database.url, '--fix');
    expect(notOk(fixed)).toEqual([]);
    expect(fixed.code).toBe(0);
    const next = async () =>
      (await database.pool.query(`SELECT nextval('fenced_lock.token')::int AS token`)).rows[0].token;
    expect(await next()).toBe(5_001);
    await patient.doctor(database.url, '--fix');
    expect(await next()).toBe(5_002);
    expect(notOk(await patient.doctor(database.url))).toEqual([]);
  });

  test('--fix waits for a transaction that has drawn a token, so that none is issued twice', async () => {
    await using database = await patient.ill(admission);
    const holder = await database.pool.connect();
    await holder.query('BEGIN');
    const { rows } = await holder.query(`SELECT nextval('fenced_lock.token')::int AS token`);
    expect(rows).toEqual([{ token: 1 }]);
    const fixing = patient.doctor(database.url, '--fix');
    await eventually('doctor waits', async () => {
      const { rowCount } = await database.pool.query(
        `SELECT FROM pg_stat_activity WHERE query LIKE 'ALTER SEQUENCE%' AND wait_event_type = 'Lock' AND datname = $1`,
        [database.name],
      );
      return rowCount === 1;
    });
    await holder.query('COMMIT');
    holder.release();
    expect(await fixing).toMatchObject({ code: 0 });
  });

  test('for a role that may not read the tables it says what it could not see, and does not call it a fault', async () => {
    await using database = await patient.ill(MAY_CONNECT);
    const url = Object.assign(new URL(database.url), { username: patient.role, password: 'secret-of-doctor' });
    const ran = await patient.doctor(url.href);
    expect(notOk(ran).map(({ check, status }) => `${check} ${status}`)).toEqual([
      'migrations warning',
      'sequence position warning',
    ]);
    expect(ran.out).not.toContain('secret-of-doctor');
  });

  test('with --role the timeouts of the connected role do not count', async () => {
    await using database = await patient.ill(
      `ALTER ROLE CURRENT_USER IN DATABASE $DATABASE SET idle_in_transaction_session_timeout = '1s'`,
    );
    expect(notOk(await patient.doctor(database.url))).toMatchObject([{ check: 'timeouts', status: 'fault' }]);
    expect(notOk(await patient.doctor(database.url, '--role', patient.role))).toEqual([]);
  });

  describe('without a Prisma project', () => {
    const doctor = (url: string) => project().run('doctor', '--json', '--database-url', url);

    test('checks the tables that have a guard, and compares no schema', async () => {
      const ran = await doctor(patient.url);
      const found = findings(ran);
      expect(found.filter(({ status }) => status === 'skipped')).toMatchObject([
        { check: 'schemas', message: 'There is no Prisma schema here.' },
        { check: 'connection', server: 'redis' },
      ]);
      expect(found.filter(({ check }) => check === 'guards')).toMatchObject([
        { status: 'ok', message: 'public."Stock": guarded (allow).' },
        { status: 'ok', message: 'public.orders: guarded (allow).' },
      ]);
      expect(ran).toMatchObject({ code: 0, json: { faults: 0, warnings: 0, skipped: 2 } });
    });

    test('finds what is wrong with one, and asks for nothing of Prisma', async () => {
      await using database = await patient.ill(
        `SET session_replication_role = replica; INSERT INTO orders (id, fence) VALUES (1, 5000);
         ALTER TABLE "Stock" DISABLE TRIGGER zzz_fenced_lock_guard, DROP COLUMN fence;
         DROP TRIGGER zzz_fenced_lock_guard_truncate ON orders`,
      );
      const found = notOk(await doctor(database.url));
      expect(found.map(({ check, status }) => `${check} ${status}`)).toEqual([
        'fences fault',
        'guards fault',
        'guards fault',
        'sequence position fault',
      ]);
      const [column, disabled, missing] = found.map(({ remedy }) => remedy);
      expect(column).toBe('ALTER TABLE "public"."Stock" ADD COLUMN "fence" BIGINT NOT NULL DEFAULT 0');
      for (const sql of [column, disabled, missing]) await database.pool.query(sql ?? '');
      expect(notOk(await doctor(database.url)).map(({ check }) => check)).toEqual(['sequence position']);
    });

    test('before anything is there, it says what makes it', async () => {
      await using database = await createDatabase();
      const [objects, ...others] = notOk(await doctor(database.url));
      expect(others).toEqual([]);
      expect(objects).toMatchObject({
        check: 'objects',
        remedy: expect.stringMatching(/^apply what npx fenced-lock sql prints; with Prisma: npx fenced-lock init/),
      });
    });
  });
});
