import type pg from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import { outcome, Stage } from '../../database/role-database.js';
import { admitByHand as admit } from '../../support/admit-by-hand.js';
import { guardSql, type Policy } from '../../support/fence-world.js';

const WILD = '9223372036854775000';

const stage: Stage = new Stage('guard_gaps', () => stage.install());
let owner: pg.Client;
let app: pg.Client;
beforeAll(async () => {
  owner = await stage.session('sec_owner');
  app = await stage.session('sec_app');
  await owner.query('CREATE SCHEMA gap; GRANT USAGE ON SCHEMA gap TO PUBLIC');
});

/** A guarded table that everybody may write. */
async function table(name: string, more: string, policy: Policy = 'allow', column = 'fence'): Promise<void> {
  await owner.query(`CREATE TABLE gap.${name} (id int PRIMARY KEY, place int NOT NULL DEFAULT 1, "${column}" bigint NOT NULL DEFAULT 0) ${more};
    ${guardSql(`gap.${name}`, column, policy)} GRANT ALL ON gap.${name} TO PUBLIC`);
}

/** A row whose fence is above every token that was drawn. */
const put = (name: string, fence: string | number, id = 1) =>
  stage.admin.query(`BEGIN; SET LOCAL session_replication_role = replica;
    INSERT INTO gap.${name} VALUES (${id}, 1, ${fence}); COMMIT`);

describe.each([
  ['fence', 'fences'],
  ['of another name', 'fences_named'],
])('a fence that a writer without a token sets: %s', (column, name) => {
  beforeAll(async () => {
    await table(name, '', 'allow', column);
    for (let n = 0; n < 10; n++) await outcome(app, admit());
  });
  const fenceOf = async (id: number) =>
    (await stage.admin.query(`SELECT "${column}" AS fence FROM gap.${name} WHERE id = ${id}`)).rows[0]?.fence;
  const insert = (id: number, fence: string | number) => `INSERT INTO gap.${name} VALUES (${id}, 1, ${fence})`;
  const update = (id: number, fence: string | number) =>
    `UPDATE gap.${name} SET "${column}" = ${fence} WHERE id = ${id}`;

  test('stays in a row that there is', async () => {
    expect(await outcome(app, insert(1, 5), update(1, WILD))).toBe('ok');
    expect(await fenceOf(1)).toBe('5');
    expect(await outcome(app, update(1, 1))).toBe('ok');
    expect(await fenceOf(1)).toBe('5');
  });

  test('passes the last token in no new row, and so refuses no lock to come', async () => {
    expect(await outcome(app, insert(2, WILD))).toBe('ok');
    expect(Number(await fenceOf(2))).toBeLessThan(1_000);
    expect(await outcome(app, admit(), update(2, 0))).toBe('ok');
  });

  test('is what an administrator says, who so gets rid of a wild one', async () => {
    await put(name, WILD, 3);
    expect(await outcome(app, admit(), `UPDATE gap.${name} SET place = 2 WHERE id = 3`)).toBe('FL001');
    expect(await outcome(owner, update(3, 0))).toBe('ok');
    expect(await fenceOf(3)).toBe(WILD);
    expect(await outcome(owner, "SELECT fenced_lock.override('a wild fence')", update(3, 0))).toBe('ok');
    expect(await outcome(app, admit(), `UPDATE gap.${name} SET place = 2 WHERE id = 3`)).toBe('ok');
  });

  test('is none, of a role without our rights', async () => {
    await owner.query('REVOKE ALL ON SCHEMA fenced_lock FROM PUBLIC; GRANT USAGE ON SCHEMA fenced_lock TO sec_app');
    const bystander = await stage.session('sec_readonly');
    expect(await outcome(bystander, insert(4, 5))).toBe('ok');
    expect(await fenceOf(4)).toBe('0');
    expect(await outcome(bystander, update(1, 9))).toBe('ok');
    expect(await fenceOf(1)).toBe('5');
    await owner.query('GRANT USAGE ON SCHEMA fenced_lock TO PUBLIC');
  });
});

test.each(['{"a": "\\u0000"}', '{"a": "\\ud800"}'])(
  'a stale write of a row is refused as one where a value of type json is none of jsonb: %s',
  async (value) => {
    const name = value.includes('d800') ? 'surrogate' : 'zero';
    await table(name, '');
    await owner.query(`ALTER TABLE gap.${name} ADD data json`);
    await put(name, WILD);
    expect(await outcome(app, `UPDATE gap.${name} SET place = 1`)).toBe('ok');
    expect(await outcome(owner, `UPDATE gap.${name} SET data = '${value}'`)).toBe('ok');
    expect(await outcome(app, admit(), `UPDATE gap.${name} SET place = 2`)).toBe('FL001');
  },
);

test('COPY of rows from a dump, before the sequence has its place, keeps no lock out', async () => {
  await table('copied', '');
  const copy = `COPY gap.copied FROM PROGRAM 'printf "1\\t1\\t${WILD}\\n"'`;
  expect(await outcome(stage.admin, copy)).toBe('ok');
  expect(await outcome(app, admit(), 'UPDATE gap.copied SET place = 2')).toBe('ok');
});

test.each<[Policy, string, string | undefined]>([
  ['allow', 'ok', '0'],
  ['require', 'FL002', undefined],
  ['prove', 'FL002', undefined],
])(
  'COPY of rows from a dump of data alone, under %s, keeps their fences behind override()',
  async (policy, plain, fence) => {
    await owner.query('ALTER SEQUENCE fenced_lock.token RESTART');
    await table(`restored_${policy}`, '', policy);
    const copy = `COPY gap.restored_${policy} FROM PROGRAM 'printf "1\\t1\\t5000\\n"'`;
    const fences = async () =>
      (await stage.admin.query<{ fence: string }>(`SELECT fence FROM gap.restored_${policy}`)).rows.map(
        (row) => row.fence,
      );
    expect(await outcome(stage.admin, copy)).toBe(plain);
    expect(await fences()).toEqual(fence === undefined ? [] : [fence]);
    const emptied = `DELETE FROM gap.restored_${policy}`;
    expect(await outcome(stage.admin, "SELECT fenced_lock.override('restore')", emptied, copy)).toBe('ok');
    expect(await fences()).toEqual(['5000']);
  },
);

describe('TRUNCATE', () => {
  test('under row-level security is refused, where a policy may hide the fresher row', async () => {
    await table('secured', '');
    await owner.query(
      `ALTER TABLE gap.secured ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON gap.secured USING (place = 2)`,
    );
    await put('secured', WILD);
    expect(await outcome(app, admit(), 'TRUNCATE gap.secured')).toBe('FL001');
    await stage.admin.query('BEGIN; SET LOCAL session_replication_role = replica; TRUNCATE gap.secured; COMMIT');
    expect(await outcome(app, admit(), 'TRUNCATE gap.secured')).toBe('FL001');
    expect(await outcome(stage.admin, admit(), 'TRUNCATE gap.secured')).toBe('ok');
  });

  test('of one partition is refused by a trigger of its own', async () => {
    await owner.query(`CREATE TABLE gap.parted (id int, place int, fence bigint NOT NULL DEFAULT 0) PARTITION BY LIST (place);
      CREATE TABLE gap.part PARTITION OF gap.parted FOR VALUES IN (1);
      ${guardSql('gap.parted', 'fence', 'require')}
      CREATE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON gap.part
      FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('require'); GRANT ALL ON gap.parted, gap.part TO PUBLIC`);
    await put('parted', WILD);
    for (const name of ['parted', 'part']) {
      expect(await outcome(app, admit(), `TRUNCATE gap.${name}`)).toBe('FL001');
      expect(await outcome(app, `TRUNCATE gap.${name}`)).toBe('FL002');
    }
  });

  test('of a table with children is refused for a fresher row of a child, and a child with a guard guards itself', async () => {
    await table('parent', '');
    await owner.query(
      `CREATE TABLE gap.child () INHERITS (gap.parent); ${guardSql('gap.child', 'fence', 'allow')} GRANT ALL ON gap.child TO PUBLIC`,
    );
    await put('child', WILD);
    for (const name of ['parent', 'child']) expect(await outcome(app, admit(), `TRUNCATE gap.${name}`)).toBe('FL001');
    expect(await outcome(app, admit(), 'UPDATE gap.parent SET place = 2')).toBe('FL001');
  });

  test.each<[Policy, string]>([
    ['allow', 'ok'],
    ['require', '42501'],
  ])('by a role without our rights, under %s: %s', async (policy, expected) => {
    await table(`bare_${policy}`, '', policy);
    await owner.query('REVOKE ALL ON SCHEMA fenced_lock FROM PUBLIC; GRANT USAGE ON SCHEMA fenced_lock TO sec_app');
    const bystander = await stage.session('sec_readonly');
    expect(await outcome(bystander, `TRUNCATE gap.bare_${policy}`)).toBe(expected);
    expect(await outcome(bystander, `INSERT INTO gap.bare_${policy} VALUES (1)`)).toBe(expected);
    await owner.query('GRANT USAGE ON SCHEMA fenced_lock TO PUBLIC');
  });
});
