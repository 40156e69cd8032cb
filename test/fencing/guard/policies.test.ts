import type pg from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import { admitByHand } from '../../support/admit-by-hand.js';
import { FenceWorld, guardSql, type Policy } from '../../support/fence-world.js';
import { since } from '../../support/since.js';

const TOKEN = 100;
let name = 0;

/** How a statement of a writer went: how many rows, or the SQLSTATE. */
type Outcome = number | string;

const world = {
  allow: new FenceWorld('guard_allow', 'allow'),
  require: new FenceWorld('guard_require', 'require'),
  prove: new FenceWorld('guard_prove', 'prove'),
};

/** Runs statements in one transaction of the application's role, the last of which counts. */
async function write(session: pg.Client, before: readonly string[], statement: string): Promise<Outcome> {
  await session.query('BEGIN');
  try {
    for (const sql of before) await session.query(sql);
    const { rowCount } = await session.query(statement);
    await session.query('COMMIT');
    return rowCount ?? 0;
  } catch (error) {
    await session.query('ROLLBACK');
    return (error as { code?: string }).code ?? String(error);
  }
}

/** A tag with this fence, put there past the guard. */
async function tag(admin: pg.Pool, fence: number): Promise<string> {
  const own = `tag ${++name}`;
  await admin.query(`BEGIN; SET LOCAL session_replication_role = replica;
    INSERT INTO people."Tag" (name, value, fence) VALUES ('${own}', 1, ${fence}); COMMIT`);
  return own;
}

async function fenceOf(admin: pg.Pool, own: string): Promise<number | undefined> {
  const { rows } = await admin.query<{ fence: string }>('SELECT fence FROM people."Tag" WHERE name = $1', [own]);
  return rows[0] && Number(rows[0].fence);
}

/** What a transaction of a lock begins with, by hand: its key's row has this token. */
const forged = `SELECT set_config('fenced_lock.token', '${TOKEN}', true)`;
const admitted = (...keys: string[]) => admitByHand({ keys });

const STATEMENTS: Readonly<Record<string, (own: string) => string>> = {
  UPDATE: (own) => `UPDATE people."Tag" SET value = 2 WHERE name = '${own}'`,
  'UPDATE of the fence': (own) => `UPDATE people."Tag" SET fence = 0 WHERE name = '${own}'`,
  DELETE: (own) => `DELETE FROM people."Tag" WHERE name = '${own}'`,
  'INSERT … ON CONFLICT': (own) =>
    `INSERT INTO people."Tag" (name, value) VALUES ('${own}', 2) ON CONFLICT (name) DO UPDATE SET value = 2, fence = excluded.fence`,
  MERGE: (own) =>
    `MERGE INTO people."Tag" t USING (VALUES ('${own}')) s (n) ON t.name = s.n WHEN MATCHED THEN UPDATE SET value = 2`,
  'MERGE, delete': (own) =>
    `MERGE INTO people."Tag" t USING (VALUES ('${own}')) s (n) ON t.name = s.n WHEN MATCHED THEN DELETE`,
  'data-modifying WITH': (own) =>
    `WITH w AS (UPDATE people."Tag" SET value = 2 WHERE name = '${own}' RETURNING 1) SELECT * FROM w`,
};

/** Why a statement cannot be sent here. */
const missing = (kind: string) => (kind.startsWith('MERGE') ? since(15, 'MERGE') : undefined);

describe.each(['allow', 'require', 'prove'] as const)('raw SQL under %s', (policy: Policy) => {
  let session: pg.Client;
  const at = () => world[policy];
  beforeAll(async () => {
    session = await at().session();
  });

  test.for(Object.entries(STATEMENTS))('%s', async ([kind, statement], { skip }) => {
    skip(missing(kind) !== undefined, missing(kind));
    const { admin } = at();
    const fresher = await tag(admin, 1_000_000);
    expect(await write(session, [admitted(fresher)], statement(fresher))).toBe('FL001');
    expect(await fenceOf(admin, fresher)).toBe(1_000_000);

    // Also of a row that this turn has written before.
    const own = await tag(admin, 0);
    const before = [admitted(own), STATEMENTS['UPDATE']?.(own) ?? '', 'SAVEPOINT s'];
    expect(await write(session, before, statement(own))).toBe(1);
    const { rows } = await admin.query<{ token: string }>('SELECT token FROM fenced_lock.admission WHERE key = $1', [
      own,
    ]);
    expect([undefined, Number(rows[0]?.token)]).toContain(await fenceOf(admin, own));

    const without = await tag(admin, 50);
    expect(await write(session, [], statement(without))).toBe(policy === 'allow' ? 1 : 'FL002');
    const gone = policy === 'allow' && (kind === 'DELETE' || kind === 'MERGE, delete');
    expect(await fenceOf(admin, without)).toBe(gone ? undefined : 50);
  });

  /** What a writer says that it has, and what only under `prove` is looked at. */
  const FORGED: Record<string, (own: string) => Promise<readonly string[]>> = {
    'a token': async () => [forged],
    'a token that another transaction got meanwhile, with its key': async (own) => {
      expect(await write(await at().session(), [], admitted(own))).toBe(1);
      const { rows } = await at().admin.query<{ token: string }>(
        'SELECT token FROM fenced_lock.admission WHERE key = $1',
        [own],
      );
      const both = `set_config('fenced_lock.token', '${rows[0]?.token}', true), set_config('fenced_lock.key', '${own}', true)`;
      return [`SELECT ${both}`];
    },
    'an admission that was rolled back to a savepoint': async (own) => [
      'SAVEPOINT s',
      admitted(own),
      'ROLLBACK TO s',
      `SELECT set_config('fenced_lock.token', '1000', true), set_config('fenced_lock.key', '${own}', true)`,
    ],
  };

  test.each(Object.entries(FORGED))('forged: %s', async (_, forge) => {
    const own = await tag(at().admin, 0);
    const outcome = await write(session, await forge(own), STATEMENTS['UPDATE']?.(own) ?? '');
    expect(outcome).toBe(policy === 'prove' ? 'FL002' : 1);
  });

  test('an admission of a dump proves nothing to the transaction that has its xid in this cluster', async () => {
    const { admin } = at();
    const own = await tag(admin, 0);
    expect(await write(session, [], admitted(own))).toBe(1);
    const restored = `UPDATE fenced_lock.admission SET xid = pg_current_xact_id(), admitted_at = now() - interval '2 hours'
      WHERE key = '${own}'`;
    const both = `SELECT set_config('fenced_lock.token', token::text, true), set_config('fenced_lock.key', key, true)
      FROM fenced_lock.admission WHERE key = '${own}'`;
    const owner = await admin.connect();
    try {
      // Kept from gc since.
      const touched = `SELECT fenced_lock.touch(jsonb_build_array(key), jsonb_build_array(holder), jsonb_build_array(token))
      FROM fenced_lock.admission WHERE key = '${own}'`;
      const before = [restored, touched, both];
      const outcome = await write(owner as unknown as pg.Client, before, STATEMENTS['UPDATE']?.(own) ?? '');
      expect(outcome).toBe(policy === 'prove' ? 'FL002' : 1);
    } finally {
      owner.release();
    }
  });

  test('of several keys the last token proves', async () => {
    const own = await tag(at().admin, 0);
    const several = admitted(own, `${own} b`, `${own} c`);
    expect(await write(session, [several], STATEMENTS['UPDATE']?.(own) ?? '')).toBe(1);
  });

  test('cascades: delete, update and set null', async () => {
    const { admin } = at();
    const n = ++name;
    const make = async (fence: number) => {
      const { rows } = await admin.query<{ id: number }>(
        `INSERT INTO people."Team" (name) VALUES ('team ${n} ${fence}') RETURNING id`,
      );
      const team = rows[0]?.id;
      await admin.query(`BEGIN; SET LOCAL session_replication_role = replica;
        INSERT INTO people."Mascot" (name, value, fence, "teamId") VALUES ('m ${n} ${fence}', 1, ${fence}, ${team}); COMMIT`);
      return team;
    };
    const [fresh, old, other] = [await make(1_000_000), await make(1), await make(2)];
    const drop = (team: number | undefined) => `DELETE FROM people."Team" WHERE id = ${team}`;
    const key = admitted(`cascade ${n}`);
    expect(await write(session, [key], drop(fresh))).toBe('FL001');
    expect(await write(session, [key], `UPDATE people."Team" SET id = id + 1000000 WHERE id = ${fresh}`)).toBe('FL001');
    expect(await write(session, [], drop(other))).toBe(policy === 'allow' ? 1 : 'FL002');
    expect(await write(session, [key], drop(old))).toBe(1);
    const mascots = await admin.query(`SELECT 1 FROM people."Mascot" WHERE name LIKE 'm ${n} %'`);
    expect(mascots.rowCount).toBe(policy === 'allow' ? 1 : 2);
  });

  test('TRUNCATE', async () => {
    const { admin } = at();
    await admin.query(
      'CREATE TABLE people.heap (id int, fence bigint NOT NULL DEFAULT 0); GRANT ALL ON people.heap TO PUBLIC',
    );
    await admin.query(guardSql('people.heap', 'fence', policy));
    const truncate = 'TRUNCATE people.heap';
    const fill = (fence: number) =>
      admin.query(
        `BEGIN; SET LOCAL session_replication_role = replica; INSERT INTO people.heap VALUES (1, ${fence}); COMMIT`,
      );
    await fill(1_000_000);
    expect(await write(session, [admitted('truncate')], truncate)).toBe('FL001');
    expect(await write(session, [], truncate)).toBe(policy === 'allow' ? 0 : 'FL002');
    await admin.query('BEGIN; SET LOCAL session_replication_role = replica; TRUNCATE people.heap; COMMIT');
    await fill(1);
    expect(await write(session, [admitted('truncate')], truncate)).toBe(0);
    const serial = ['SET TRANSACTION ISOLATION LEVEL REPEATABLE READ', admitted('truncate')];
    expect(await write(session, serial, truncate)).toBe('FL001');
  });

  test('an administrator writes without a token in one transaction, on record, and nobody else does', async () => {
    const { admin } = at();
    const own = await tag(admin, 50);
    const sql = STATEMENTS['UPDATE']?.(own) ?? '';
    const allow = "SELECT fenced_lock.override('ticket 7')";
    expect(await write(session, [allow], sql)).toBe('42501');
    const administrator = await admin.connect();
    try {
      expect(await write(administrator as unknown as pg.Client, [allow, 'SAVEPOINT s'], sql)).toBe(1);
      expect(await write(administrator as unknown as pg.Client, [], sql)).toBe(policy === 'allow' ? 1 : 'FL002');
    } finally {
      administrator.release();
    }
    expect(await fenceOf(admin, own)).toBe(50);
    const { rows } = await admin.query('SELECT why, by_role FROM fenced_lock.override');
    expect(rows).toEqual([{ why: 'ticket 7', by_role: 'postgres' }]);
  });

  test('partitions: rows that move, partitions that are written by their own name, columns that Postgres makes', async () => {
    const { admin } = at();
    await admin.query(`CREATE TABLE people.part (
        id int, place int NOT NULL, "my fence" bigint NOT NULL DEFAULT 0, twice int GENERATED ALWAYS AS (id * 2) STORED
      ) PARTITION BY LIST (place);
      CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON people.part
      FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('my fence', '${policy}');
      CREATE TABLE people.part_1 PARTITION OF people.part FOR VALUES IN (1);
      CREATE TABLE people.part_2 PARTITION OF people.part FOR VALUES IN (2);
      GRANT ALL ON people.part, people.part_1, people.part_2 TO PUBLIC;
      BEGIN; SET LOCAL session_replication_role = replica;
      INSERT INTO people.part VALUES (1, 1, 1000000), (2, 1, 5), (3, 1, 6); COMMIT`);
    const move = (id: number) => `UPDATE people.part SET place = 2 WHERE id = ${id}`;
    expect(await write(session, [admitted('part')], move(1))).toBe('FL001');
    expect(await write(session, [admitted('part')], 'UPDATE people.part_1 SET place = 1 WHERE id = 1')).toBe('FL001');
    expect(await write(session, [], move(3))).toBe(policy === 'allow' ? 1 : 'FL002');
    expect(await write(session, [admitted('part')], move(2))).toBe(1);
    const { rows } = await admin.query<{ id: number; place: number; fence: string; twice: number }>(
      'SELECT id, place, "my fence" AS fence, twice FROM people.part ORDER BY id',
    );
    expect(rows[0]).toEqual({ id: 1, place: 1, fence: '1000000', twice: 2 });
    expect(rows[2]).toEqual({ id: 3, place: policy === 'allow' ? 2 : 1, fence: '6', twice: 6 });
    expect(rows[1]).toMatchObject({ id: 2, place: 2, twice: 4 });
    expect(Number(rows[1]?.fence)).toBeGreaterThan(5);
  });

  test('a replica applies what was decided elsewhere', async () => {
    const { admin } = at();
    const own = await tag(admin, 1_000_000);
    await admin.query(`BEGIN; SET LOCAL session_replication_role = replica; ${STATEMENTS['UPDATE']?.(own)}; COMMIT`);
    expect(await fenceOf(admin, own)).toBe(1_000_000);
  });
});
