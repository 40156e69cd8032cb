import { readFileSync } from 'node:fs';
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { applicationFunctions } from '../../src/cli/migrations/packaged.js';
import { admitByHand as admit } from '../support/admit-by-hand.js';
import { outcome, Stage } from './role-database.js';

const MIGRATION = readFileSync(
  new URL('../../prisma/migrations/20261101000000_fenced_lock/migration.sql', import.meta.url),
  'utf8',
);
const NEWER = MIGRATION.replace(/objects 7'/, "objects 8'").replace(/> 7;/, '> 8;');

/** How the owner applies the script. */
const apply = (owner: pg.Client, script = MIGRATION) => outcome(owner, script);

describe('the script, in a database where something is already', () => {
  let owner: pg.Client;
  const stage = new Stage('security_again', async () => {
    await stage.install();
    owner = await stage.session('sec_owner');
  });

  const state = async () =>
    (
      await stage.admin.query(`SELECT (SELECT last_value FROM fenced_lock.token) AS token,
        (SELECT json_agg(a ORDER BY key) FROM fenced_lock.admission AS a) AS rows, (SELECT id FROM fenced_lock.epoch) AS epoch`)
    ).rows;

  test('keeps tokens, rows and the epoch, replaces functions, and leaves triggers and the search_path as they were', async () => {
    const app = await stage.session('sec_app');
    for (const key of ['a', 'b', 'a']) expect(await outcome(app, admit({ keys: [key] }))).toBe('ok');
    await app.query('SELECT fenced_lock.start_epoch()');
    await owner.query(`CREATE TABLE public.guarded (id int, fence bigint NOT NULL DEFAULT 0);
      CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON public.guarded
        FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'require');
      CREATE OR REPLACE FUNCTION fenced_lock.guards(OUT table_id oid, OUT schema_name text, OUT table_name text, OUT fence_column text)
        RETURNS SETOF record LANGUAGE sql AS 'SELECT 1::oid, NULL::text, NULL::text, NULL::text'`);
    const before = await state();
    await owner.query('SET search_path = nowhere, public');
    expect(await apply(owner)).toBe('ok');
    expect((await owner.query('SHOW search_path')).rows).toEqual([{ search_path: 'nowhere, public' }]);
    expect(await state()).toEqual(before);
    expect((await owner.query('SELECT table_name FROM fenced_lock.guards()')).rows).toEqual([
      { table_name: 'guarded' },
    ]);
    expect(await outcome(owner, 'INSERT INTO public.guarded VALUES (1)')).toBe('FL002');
  });

  test('leaves a newer version as it is', async () => {
    const made = `CREATE OR REPLACE FUNCTION fenced_lock.start_epoch() RETURNS void LANGUAGE sql AS 'SELECT /* newer */'`;
    expect(await apply(owner, NEWER)).toBe('ok');
    await owner.query(made);
    expect(await apply(owner)).toBe('ok');
    const { rows } = await owner.query(`SELECT obj_description('fenced_lock'::regnamespace) AS version,
      (SELECT prosrc FROM pg_proc WHERE oid = 'fenced_lock.start_epoch'::regproc) AS source`);
    expect(rows).toEqual([{ version: 'prisma-extension-fenced-lock objects 8', source: 'SELECT /* newer */' }]);
    expect(await apply(owner, NEWER)).toBe('ok');
  });

  test('what was taken from everybody stays taken, and the application keeps what it has, new functions too', async () => {
    await owner.query(`REVOKE ALL ON SCHEMA fenced_lock FROM PUBLIC; REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fenced_lock FROM PUBLIC;
      GRANT USAGE ON SCHEMA fenced_lock TO sec_app;
      GRANT EXECUTE ON FUNCTION ${applicationFunctions(MIGRATION).join(', ')} TO sec_app;
      DROP FUNCTION fenced_lock.touch(jsonb, jsonb, jsonb)`);
    expect(await apply(owner, NEWER)).toBe('ok');
    const [app, readonly] = [await stage.session('sec_app'), await stage.session('sec_readonly')];
    expect(await outcome(app, admit(), `SELECT fenced_lock.touch('[]', '[]', '[]')`)).toBe('ok');
    expect(await outcome(readonly, admit())).toBe('42501');
    expect(await outcome(app, "SELECT fenced_lock.override('me')")).toBe('42501');
    expect(await outcome(app, 'SELECT fenced_lock.limit_times(NULL, NULL)')).toBe('42501');
  });
});

describe('the script, where somebody else was first', () => {
  const stage = new Stage('security_squatted', async () => {});

  test.each([
    ['a schema', 'CREATE SCHEMA fenced_lock'],
    [
      'a schema with a table in it',
      'CREATE SCHEMA fenced_lock; CREATE TABLE fenced_lock.admission (key text PRIMARY KEY, token bigint)',
    ],
  ])('refuses to take over %s of another role, also as a superuser', async (_, made) => {
    const owner = await stage.session('sec_owner');
    const attacker = await stage.session('sec_tenant');
    await stage.admin.query('GRANT CREATE ON DATABASE security_squatted TO sec_tenant');
    await attacker.query(made);
    expect(await apply(owner)).toBe('42501');
    expect(await apply(stage.admin)).toBe('42501');
    // The schema alone, handed over, still has what is in it.
    await stage.admin.query('ALTER SCHEMA fenced_lock OWNER TO sec_owner');
    expect(await apply(owner)).toBe(made.includes('TABLE') ? '42501' : 'ok');
    await stage.admin.query('DROP SCHEMA fenced_lock CASCADE');
  });
});

describe('a new installation', () => {
  const stage = new Stage('security_new', async () => {
    const owner = await stage.session('sec_owner');
    await owner.query(`ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO sec_app;
      ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO sec_app; ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO sec_app;
      ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO sec_app`);
    await stage.install();
  });

  test('gives nobody more by ALTER DEFAULT PRIVILEGES than the application needs', async () => {
    const app = await stage.session('sec_app');
    for (const statement of [
      "SELECT fenced_lock.override('me')",
      "SELECT setval('fenced_lock.token', 1)",
      'SELECT 1 FROM fenced_lock.admission',
      "INSERT INTO fenced_lock.override VALUES ('1', 'me', 'me', now())",
      'CREATE FUNCTION fenced_lock.is_admitted(integer) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$',
    ]) {
      expect(await outcome(app, statement)).toBe('42501');
    }
    expect(await outcome(app, admit())).toBe('ok');
  });

  test('the list of what an application calls is all that there is, but for what only the owner does', async () => {
    const { rows } = await stage.admin.query<{
      name: string;
    }>(`SELECT format('%s.%I(%s)', pronamespace::regnamespace, proname,
      oidvectortypes(proargtypes)) AS name FROM pg_proc WHERE pronamespace = 'fenced_lock'::regnamespace`);
    const kept = [
      'guard()',
      'guard_truncate()',
      'override(text)',
      'limit_times(integer, integer)',
      'run_after(timestamp with time zone, integer, integer, integer)',
    ];
    const listed = [...applicationFunctions(MIGRATION), ...kept.map((name) => `fenced_lock.${name}`)];
    expect(rows.map(({ name }) => name).sort()).toEqual(listed.sort());
  });
});
