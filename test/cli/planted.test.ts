import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ADMIT } from '../../src/database/sql.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { findings, notOk, Patient } from './patient.js';

/** The types of what the command compares, casts and passes. */
const TYPES = [
  ...['oid', 'name', 'text', '"char"', 'boolean', 'bytea', 'xid', 'xid8', 'jsonb'],
  ...['smallint', 'integer', 'bigint', 'numeric', 'double precision', 'interval', 'timestamptz'],
  ...['regclass', 'regproc', 'regprocedure', 'regtype', 'regnamespace', 'oid[]', 'text[]', 'integer[]', 'int2vector'],
];
const OPERATORS = ['=', '<>', '<', '>', '||', '-', '&', '~', '/'];
const FUNCTIONS = ['max', 'count', 'format', 'position', 'greatest_', 'to_regclass', 'pg_terminate_backend', 'unnest'];
const list = (texts: readonly string[]) => texts.map((text) => `'${text}'`).join(', ');

/**
 * What an attacker leaves in `public` and waits for the owner with: an operator for each pair of types, and functions of
 * usual names. Where one fits better than the catalog's own it is taken, if `public` is looked into at all.
 */
const PLANTED = `DO $plant$
DECLARE
  one text; other text; name text; number integer := 0;
BEGIN
  FOREACH one IN ARRAY ARRAY[${list(TYPES)}] LOOP
    FOREACH other IN ARRAY ARRAY[${list(TYPES)}] LOOP
      number := number + 1;
      EXECUTE format('CREATE FUNCTION public.planted_%s(%s, %s) RETURNS boolean LANGUAGE plpgsql AS '
        '''BEGIN RAISE EXCEPTION ''''planted''''; END''', number, one, other);
      FOREACH name IN ARRAY ARRAY[${list(OPERATORS)}] LOOP
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.planted_%s)',
          name, one, other, number);
      END LOOP;
    END LOOP;
    FOREACH name IN ARRAY ARRAY[${list(FUNCTIONS)}] LOOP
      EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS text LANGUAGE plpgsql AS '
        '''BEGIN RAISE EXCEPTION ''''planted''''; END''', name, one);
    END LOOP;
  END LOOP;
END $plant$`;

describe('what somebody has planted in public', () => {
  const patient = new Patient();
  const wild = `SET session_replication_role = replica; INSERT INTO "Stock" (id, fence) VALUES (1, 9e18::bigint);`;

  test('would be run by a statement that looks names up there (control)', async () => {
    await using database = await patient.ill(PLANTED);
    const looking = database.pool.query(`SELECT FROM pg_class WHERE oid = to_regclass('fenced_lock.token')`);
    await expect(looking).rejects.toThrow('planted');
  });

  test.for<[string, ...string[]]>([['doctor', '--fix'], ['gc'], ['init', '--dry-run', '--role', 'somebody']])(
    'is not run by %j',
    async ([command, ...args]) => {
      await using database = await patient.ill(`${wild} ${PLANTED}`);
      const ran = await patient.project.run(command, ...args, '--json', '--database-url', database.url);
      expect(ran.out + ran.err).not.toContain('planted');
      if (command === 'doctor') expect(notOk(ran).map(({ check }) => check)).toEqual(['sequence position']);
      else expect(ran).toMatchObject({ code: 0, json: { ok: true } });
      expect(findings(ran) ?? []).not.toContainEqual(
        expect.objectContaining({ message: expect.stringMatching(/not be looked/) }),
      );
    },
  );

  describeWithRedis('with Redis', (redis) => {
    test('is not run by ls and unlock, also where unlock has to end somebody', async () => {
      await using database = await patient.ill(PLANTED);
      const key = `planted:${randomUUID()}`;
      const holder = await database.pool.connect();
      holder.on('error', () => {});
      await holder.query(`SET search_path = pg_catalog`);
      await holder.query('BEGIN');
      await holder.query(ADMIT, [key, randomUUID(), randomUUID(), 60_000, 60_000, 1_000, null]);
      const servers = ['--json', '--database-url', database.url, '--redis-url', redis().url];
      expect(await patient.project.run('ls', ...servers)).toMatchObject({ code: 0 });
      const unlocked = await patient.project.run('unlock', ...servers, key);
      expect(unlocked).toMatchObject({ code: 0, err: '', json: { ok: true, ended: [expect.any(Number)] } });
      holder.release(true);
    });
  });
});
