import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import { ADMIT, ADMIT_KEYS } from '../../src/database/sql.js';
import { eventually } from '../support/eventually.js';
import { Stage } from './role-database.js';

const INVALID = '22023';
const ROOM = 1_234_567;
const LIMITS = ['idle_in_transaction_session_timeout', 'statement_timeout', 'tcp_user_timeout', 'lock_timeout'];

interface Asked {
  readonly key: string | null;
  readonly holder: string | null;
  readonly attempt: string | null;
  readonly leaseTime: number | null;
  readonly workTime: number | null;
  readonly waitTime: number | null;
  readonly room: number | null;
}

describe('the admission of one key', () => {
  let app: pg.Client;
  const stage: Stage = new Stage('security_one_key', () => stage.install());
  beforeAll(async () => {
    app = await stage.session('sec_app');
  });

  const asked = (more: Partial<Asked> = {}): Asked => ({
    key: `stock:${randomUUID()}`,
    holder: randomUUID(),
    attempt: randomUUID(),
    leaseTime: 30_000,
    workTime: 20_000,
    waitTime: 1_000,
    room: ROOM,
    ...more,
  });

  /** Sends the admission, and answers with its words. */
  async function admit(session: pg.Client, { key, holder, attempt, leaseTime, workTime, waitTime, room }: Asked) {
    const values = [key, holder, attempt, leaseTime, workTime, waitTime, room];
    const { rows } = await session.query<{ answer: string }>(ADMIT, values);
    const [turn, xid, pid, epoch, token] = (rows[0]?.answer ?? '').split(' ');
    return { turn, xid, pid, epoch, token };
  }

  async function inTransaction<T>(session: pg.Client, end: 'COMMIT' | 'ROLLBACK', work: () => Promise<T>): Promise<T> {
    await session.query('BEGIN');
    try {
      const result = await work();
      await session.query(end);
      return result;
    } catch (error) {
      await session.query('ROLLBACK');
      throw error;
    }
  }

  /** A turn of its own. */
  const turn = (session: pg.Client, more: Partial<Asked>) =>
    inTransaction(session, 'COMMIT', () => admit(session, asked(more)));

  const rowOf = async (key: string | null) =>
    (await stage.admin.query('SELECT *, attempts::text[] FROM fenced_lock.admission WHERE key = $1', [key]))
      .rows[0] as unknown;

  /** Resolves when a session of the application waits for a row. */
  async function someoneWaits(): Promise<void> {
    // Of the same role, which sees what its sessions wait for.
    const bystander = await stage.session('sec_app');
    await eventually('it waits for the row', async () => {
      const { rowCount } = await bystander.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND usename = 'sec_app'
         AND wait_event_type = 'Lock'`,
      );
      return rowCount === 1 ? true : undefined;
    });
  }

  describe.each([
    ['has no row yet', false],
    ['has a row', true],
  ])('where the key %s', (_, hasRow) => {
    test.each<readonly [string, Partial<Asked>]>([
      ['a negative leaseTime', { leaseTime: -1 }],
      ['a workTime of 0', { workTime: 0 }],
      ['a negative waitTime', { waitTime: -1 }],
      ['no attempt', { attempt: null }],
      ['no holder', { holder: null }],
    ])('is refused: %s', async (_, wrong) => {
      const { key } = asked();
      if (hasRow) await turn(app, { key });
      const before = await rowOf(key);
      await expect(turn(app, { key, ...wrong })).rejects.toMatchObject({ code: INVALID });
      expect(await rowOf(key)).toEqual(before);
    });

    test.each([
      ['none', ['0', '0', '0', '0'], ['30s', '20s', '30000']],
      ['shorter ones', ['8s', '7s', '9000', '3s'], ['8s', '7s', '9000']],
    ])('limits its transaction, in a session with limits: %s', async (_, own, limited) => {
      const session = await stage.session('sec_app');
      for (const [at, name] of LIMITS.entries()) {
        await session.query('SELECT set_config($1, $2, false)', [name, own[at]]);
      }
      const { key } = asked();
      if (hasRow) await turn(session, { key });
      const limits = await inTransaction(session, 'ROLLBACK', async () => {
        await admit(session, asked({ key }));
        return (await session.query(`SELECT ARRAY[${LIMITS.map((name) => `current_setting('${name}')`)}] AS limits`))
          .rows;
      });
      expect(limits).toEqual([{ limits: [...limited, own[3]] }]);
    });
  });

  test('whose row is deleted while it waits creates it, and leaves lock_timeout as it was', async () => {
    const { key } = asked();
    const first = await turn(app, { key });
    const gc = stage.admin;
    await gc.query('BEGIN');
    await gc.query('DELETE FROM fenced_lock.admission WHERE key = $1', [key]);
    const contender = await stage.session('sec_app');
    await contender.query("SET lock_timeout = '7s'");
    await contender.query('BEGIN');
    const admitted = admit(contender, asked({ key }));
    await someoneWaits();
    await gc.query('COMMIT');
    const second = await admitted;
    expect(second).toMatchObject({ turn: '1' });
    expect(BigInt(second.token ?? 0)).toBeGreaterThan(BigInt(first.token ?? 0));
    expect((await contender.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '7s' }]);
    await contender.query('COMMIT');
  });

  test.each(['one key', 'several keys'])(
    'leaves in the row who was admitted, and in which transaction: %s',
    async (kind) => {
      const { key } = asked();
      const attempts: (string | null)[] = [];
      for (let turns = 1; turns <= 17; turns++) {
        const { holder, attempt, leaseTime, workTime, waitTime, room } = asked();
        attempts.unshift(attempt);
        const [answer] = await inTransaction(app, 'COMMIT', async () => {
          const times = [leaseTime, workTime, waitTime, room];
          const ofOne = [ADMIT, [key, holder, attempt, ...times]] as const;
          const ofSeveral = [ADMIT_KEYS, [[key], [holder], attempt, ...times, null, null, null]] as const;
          const [text, values] = kind === 'one key' ? ofOne : ofSeveral;
          return (await app.query<{ answer: string }>(text, [...values])).rows;
        });
        const [told, xid, , , token] = answer?.answer.split(' ') ?? [];
        expect(told).toBe(String(turns));
        expect(await rowOf(key)).toMatchObject({
          key,
          token,
          holder,
          turns: told,
          attempts: attempts.slice(0, 16),
          xid,
        });
      }
    },
  );

  test('draws its token behind the wait for its row, and not before', async () => {
    const { key } = asked();
    await turn(app, { key });
    const [contender, bystander] = [await stage.session('sec_app'), await stage.session('sec_app')];
    await app.query('BEGIN');
    await admit(app, asked({ key }));
    await contender.query('BEGIN');
    const admitted = admit(contender, asked({ key }));
    await someoneWaits();
    const other = await turn(bystander, {});
    await app.query('COMMIT');
    expect(BigInt((await admitted).token ?? 0)).toBeGreaterThan(BigInt(other.token ?? 0));
    await contender.query('COMMIT');
  });
});
