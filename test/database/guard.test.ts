import type pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { admitByHand as admit } from '../support/admit-by-hand.js';
import { guardSql, type Policy } from '../support/fence-world.js';
import { plant, plantTypes, victims } from './plants.js';
import { outcome, Stage } from './role-database.js';

const POLICIES = ['allow', 'require', 'prove'] as const;

/** A parent, and children on it whose rows are written by the actions of their foreign keys, as the owner. */
const tables = (policy: Policy) => `
  CREATE SCHEMA ${policy};
  CREATE TABLE ${policy}.parent (id int PRIMARY KEY);
  CREATE TABLE ${policy}.child (id int PRIMARY KEY, parent int REFERENCES ${policy}.parent ON DELETE SET NULL ON UPDATE CASCADE,
    fence bigint NOT NULL DEFAULT 0);
  CREATE TABLE ${policy}.other (id int PRIMARY KEY, parent int REFERENCES ${policy}.parent ON DELETE CASCADE ON UPDATE CASCADE,
    row_fence bigint NOT NULL DEFAULT 0);
  INSERT INTO ${policy}.parent SELECT generate_series(1, 100);
  INSERT INTO ${policy}.child SELECT i, i, 0 FROM generate_series(1, 100) AS i;
  INSERT INTO ${policy}.other SELECT i, i, 0 FROM generate_series(1, 100) AS i;
  CREATE FUNCTION ${policy}.reset() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS
    $$ BEGIN IF TG_TABLE_NAME = 'child' THEN NEW.fence := 3; ELSE NEW.row_fence := 3; END IF; RETURN NEW; END $$;
  ${['child', 'other']
    .map(
      (name) => `
  CREATE TRIGGER own_of_the_table BEFORE UPDATE ON ${policy}.${name} FOR EACH ROW EXECUTE FUNCTION ${policy}.reset();
  ${guardSql(`${policy}.${name}`, name === 'child' ? 'fence' : 'row_fence', policy)}`,
    )
    .join('')}
  GRANT USAGE ON SCHEMA ${policy} TO PUBLIC;
  GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA ${policy} TO sec_app;`;

describe('an attacker who may write a guarded table, with a search_path of its own', () => {
  let attacker: pg.Client;
  const stage = new Stage('security_guard', async () => {
    await stage.install();
    const owner = await stage.session('sec_owner');
    for (const policy of POLICIES) await owner.query(tables(policy));
    await owner.query(`
      CREATE SCHEMA control;
      CREATE FUNCTION control.careless() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF nullif(NEW.id::text, 'x') IS NULL THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TABLE control.parent (id int PRIMARY KEY);
      CREATE TABLE control.child (parent int REFERENCES control.parent ON DELETE SET NULL, id int);
      CREATE TRIGGER careless BEFORE UPDATE ON control.child FOR EACH ROW EXECUTE FUNCTION control.careless();
      INSERT INTO control.parent VALUES (1);
      INSERT INTO control.child VALUES (1, 1);
      GRANT USAGE ON SCHEMA control TO sec_app;
      GRANT SELECT, DELETE ON control.parent TO sec_app`);
    await stage.admin.query('CREATE SCHEMA evil AUTHORIZATION sec_app; GRANT USAGE ON SCHEMA evil TO PUBLIC');
    attacker = await stage.session('sec_app');
    await attacker.query(plant('evil', 'sec_app'));
    await attacker.query(plantTypes('pg_temp', 'evil'));
    for (const table of [
      'pg_class',
      'pg_namespace',
      'pg_trigger',
      'pg_index',
      'pg_attribute',
      'admission',
      'override',
    ]) {
      await attacker.query(`CREATE TEMP TABLE ${table} (key int)`);
    }
    // A column that is not there would be a call of this.
    await attacker.query(`CREATE FUNCTION evil.row_fence(pg_catalog.anyelement) RETURNS pg_catalog.int8 LANGUAGE plpgsql AS
      $$ BEGIN PERFORM evil.ran(); RETURN 0; END $$`);
    await attacker.query('SET search_path = evil, pg_catalog');
  });
  const forged = "SELECT pg_catalog.set_config('fenced_lock.token', '9000000000000000000', true)";

  const ranAs = async () => (await stage.admin.query(victims('evil'))).rows;
  afterEach(() => stage.admin.query('ALTER SEQUENCE evil.ran_as RESTART'));

  test('is a real one: a careless trigger runs its code as the owner (control)', async () => {
    expect(await outcome(attacker, 'DELETE FROM control.parent')).toBe('ok');
    expect(await ranAs()).toEqual([{ role: 'sec_owner' }]);
  });

  const by = (id: number) => `WHERE id OPERATOR(pg_catalog.=) ${id}`;
  const writes = (schema: string): Readonly<Record<string, (id: number) => string>> => ({
    'an UPDATE': (id) => `UPDATE ${schema}.child SET parent = NULL ${by(id)}`,
    'an UPDATE of the fence': (id) => `UPDATE ${schema}.child SET fence = 77 ${by(id)}`,
    'an UPDATE of a fence of another name': (id) => `UPDATE ${schema}.other SET row_fence = 77 ${by(id)}`,
    'an INSERT': (id) => `INSERT INTO ${schema}.child VALUES (${1_000 + id}, NULL, 5)`,
    'an INSERT with a fence of another name': (id) => `INSERT INTO ${schema}.other VALUES (${1_000 + id}, NULL, 5)`,
    'a DELETE': (id) => `DELETE FROM ${schema}.child ${by(id)}`,
    'ON DELETE SET NULL and CASCADE': (id) => `DELETE FROM ${schema}.parent ${by(id)}`,
    'ON UPDATE CASCADE': (id) => `UPDATE ${schema}.parent SET id = ${2_000 + id} ${by(id)}`,
    'TRUNCATE CASCADE': () => `TRUNCATE ${schema}.parent CASCADE`,
  });
  const situations: Readonly<Record<string, readonly string[]>> = {
    'without a token': [],
    'with a token': [admit({ keys: ['a'] })],
    'with a forged token': [forged],
    'with a low token': ["SELECT pg_catalog.set_config('fenced_lock.token', '-1', true)"],
  };

  describe.each(POLICIES)('under %s', (policy) => {
    test.for(Object.entries(situations))('runs nothing as anybody else %s', async ([, before]) => {
      for (const [at, write] of Object.values(writes(policy)).entries()) {
        // Each is tried and rolled back, for the next one to find the same rows.
        expect(await outcome(attacker, ...before, write(1 + at), 'SELECT 1 OPERATOR(pg_catalog./) 0')).toMatch(
          /^(22012|FL00[12])$/,
        );
      }
      expect(await ranAs()).toEqual([]);
    });
  });

  test('does not pass `prove` by a forged answer', async () => {
    const key = "SELECT pg_catalog.set_config('fenced_lock.key', 'a', true)";
    for (const [at, write] of Object.values(writes('prove')).entries()) {
      expect(await outcome(attacker, forged, key, write(20 + at))).toBe('FL002');
      expect(await outcome(attacker, write(20 + at))).toBe('FL002');
    }
    expect(await ranAs()).toEqual([]);
  });

  test('does not have a fresher row truncated by a max() of its own', async () => {
    await stage.admin.query(`BEGIN; SET LOCAL session_replication_role = replica;
      UPDATE prove.child SET fence = 1000000 WHERE id = 50; COMMIT`);
    expect(await outcome(attacker, admit(), 'TRUNCATE prove.child')).toBe('FL001');
    expect(await ranAs()).toEqual([]);
  });

  test('calls every function of ours itself, and nothing runs as its owner', async () => {
    const { rows } = await stage.admin.query<{ call: string }>(`
      SELECT pg_catalog.format('SELECT fenced_lock.%I(%s)', p.proname, (
        SELECT pg_catalog.string_agg(CASE t::regtype::text WHEN 'jsonb' THEN '''["a"]''::pg_catalog.jsonb'
          WHEN 'text' THEN '''1''::pg_catalog.text' ELSE '1::pg_catalog.' || t::regtype END, ', ')
        FROM pg_catalog.unnest(p.proargtypes::oid[]) AS t)) AS call
      FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = 'fenced_lock'::regnamespace AND p.prorettype <> 'trigger'::regtype`);
    expect(rows.length).toBeGreaterThan(10);
    for (const { call } of rows) await outcome(attacker, call);
    expect(await outcome(attacker, admit({ room: 7, durable: true }))).toBe('ok');
    expect(await ranAs()).toEqual([]);
  });

  test('does not run code by a fence column that is not there any more', async () => {
    await stage.admin.query('ALTER TABLE allow.other RENAME row_fence TO renamed');
    expect(await outcome(attacker, 'DELETE FROM allow.parent WHERE id OPERATOR(pg_catalog.=) 60')).toBe('42703');
    await stage.admin.query('ALTER TABLE allow.other RENAME renamed TO row_fence');
    expect(await ranAs()).toEqual([]);
  });

  test('has neither set the sequence back nor become anybody else', async () => {
    const { rows } =
      await stage.admin.query(`SELECT s.last_value >= (SELECT max(token) FROM fenced_lock.admission) AS ahead,
      (SELECT count(*)::int FROM pg_roles WHERE rolname LIKE 'sec\\_%' AND rolsuper) AS superusers FROM fenced_lock.token AS s`);
    expect(rows).toEqual([{ ahead: true, superusers: 0 }]);
    expect(await outcome(attacker, "SELECT pg_catalog.setval('fenced_lock.token', 1)")).toBe('42501');
    expect(await outcome(attacker, "SELECT fenced_lock.override('me')")).toBe('42501');
  });
});
