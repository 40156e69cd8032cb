import type pg from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import * as texts from '../../src/database/sql.js';
import { plant, victims } from './plants.js';
import { Stage } from './role-database.js';

const ID = '00000000-0000-4000-8000-000000000000';

/** Something for the parameters of each text. */
const VALUES: Readonly<Record<keyof typeof texts, readonly unknown[]>> = {
  ADMIT: ['stock:1', ID, ID, 30_000, 30_000, 1_000, 7],
  ADMIT_KEYS: [['stock:1'], [ID], ID, 30_000, 30_000, 1_000, 7, null, null, null],
  OWN_TRANSACTION: [],
  STILL_HERE: [],
  OWN_XID: [],
  SERVER_TIME: [],
  END_BLOCKERS: [1, 5, '5', 7, 5],
  END_BACKEND: [1, '5', ID],
  EVIDENCE: ['stock:1', '5'],
  START_EPOCH: [],
  GUARDS: [],
  AWAIT_ROW: ['public', 'stock', '{"id": 1}'],
  TOUCH: ['["stock:1"]', `["${ID}"]`, '["1"]'],
  LAST_ADMISSIONS: ['["stock:1"]'],
  HEALTH: [],
  LAST_TURNS: ['stock:1'],
  NEXT_RUN: ['stock:1', 60_000, 0, 0],
  MARK_RUN: ['stock:1', 60_000, 0, 0],
};

describe.each([
  ['first', 'public, pg_catalog'],
  ['as by default', '"$user", public'],
])('a schema in which a tenant has planted all that can be planted, in the search_path %s', (_, path) => {
  let victim: pg.Client;
  const stage = new Stage(`security_statements_${path.length}`, async () => {
    await stage.install();
    await stage.admin.query('SET search_path = pg_catalog');
    await stage.admin.query(
      'GRANT USAGE, CREATE ON SCHEMA public TO PUBLIC; CREATE SCHEMA sec_app AUTHORIZATION sec_app',
    );
    const planter = await stage.session('sec_tenant');
    await planter.query(plant('public', 'sec_tenant'));
    victim = await stage.session('sec_app');
    await stage.admin.query(`CREATE TABLE public.stock (id int PRIMARY KEY); INSERT INTO public.stock VALUES (1);
      GRANT ALL ON public.stock TO PUBLIC`);
  });
  beforeAll(() => victim.query(`SET search_path = ${path}`));

  /** What of the planted a text would use. A view depends on all that its text was understood as. */
  async function caught(text: string): Promise<readonly unknown[]> {
    await victim.query(`CREATE VIEW sec_app.understood AS ${text.replaceAll(/\$\d+/g, 'NULL')}`);
    const { rows } = await stage.admin.query(`
      SELECT pg_describe_object(d.refclassid, d.refobjid, 0) AS planted
      FROM pg_rewrite AS r JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
      CROSS JOIN LATERAL pg_identify_object(d.refclassid, d.refobjid, 0) AS o
      WHERE r.ev_class = 'sec_app.understood'::regclass AND o.schema = 'public'`);
    await victim.query('DROP VIEW sec_app.understood');
    return rows;
  }

  test('catches a careless statement (control)', async () => {
    expect(
      await caught("SELECT 1 FROM pg_catalog.pg_trigger AS t WHERE t.tgfoid = 'pg_catalog.now'::regproc"),
    ).not.toEqual([]);
    await victim.query('SELECT 1::float8 / 2::int4');
    expect((await stage.admin.query(victims('public'))).rows).toEqual([{ role: 'sec_app' }]);
    await stage.admin.query('ALTER SEQUENCE public.ran_as RESTART');
  });

  test.for(Object.entries(texts))('catches nothing of %s', async ([name, text]) => {
    expect(await caught(text)).toEqual([]);
    await victim.query('BEGIN');
    // It comes behind the admission of its key.
    if (name === 'MARK_RUN') await victim.query(texts.ADMIT, [...VALUES.ADMIT]);
    await victim.query(text, [...VALUES[name as keyof typeof texts]]);
    await victim.query('COMMIT');
    expect((await stage.admin.query(victims('public'))).rows).toEqual([]);
  });
});
