import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import type { OwnDatabase } from './database.js';
import { notOk, Patient } from './patient.js';
import type { Ran } from './project.js';

describe('doctor, beside locks that go on drawing tokens', () => {
  const patient = new Patient();
  const WILD = 5_000_000_000;

  /**
   * Stops doctor at both of its looks at the admissions, and draws a token each time: after it has read where the
   * sequence is, and before it sees the rows.
   */
  async function doctorWhileTokensAreDrawn({ name, url, pool }: OwnDatabase): Promise<Ran> {
    const lock = 'BEGIN; LOCK TABLE fenced_lock.admission IN ACCESS EXCLUSIVE MODE';
    const draw = `INSERT INTO fenced_lock.admission (key, token, holder, born, turns, attempts, admitted_at)
      SELECT 'k' || token, token, gen_random_uuid(), 0, 1, '{}', now() FROM nextval('fenced_lock.token') AS token; COMMIT`;
    const [first, second] = [await pool.connect(), await pool.connect()];
    const waiting = (count: number) =>
      eventually(`${count} wait for the admissions`, async () => {
        const { rowCount } = await pool.query(
          `SELECT FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`,
          [name],
        );
        return rowCount === count;
      });
    try {
      await first.query(lock);
      const ran = patient.doctor(url);
      await waiting(1);
      // Behind doctor's first look, and so before its second one.
      const isLocked = second.query(lock);
      await waiting(2);
      await first.query(draw);
      await isLocked;
      await waiting(1);
      await second.query(draw);
      return await ran;
    } finally {
      first.release(true);
      second.release(true);
    }
  }

  test('takes no token for undrawn that was drawn since it looked at the sequence', async () => {
    await using database = await patient.ill('SELECT 1');
    const ran = await doctorWhileTokensAreDrawn(database);
    expect(notOk(ran)).toEqual([]);
    expect(ran.code).toBe(0);
  });

  test('with a wild token beside them, the statements leave those alone that are drawn until they are run', async () => {
    await using database = await patient.ill(
      `SET session_replication_role = replica; INSERT INTO "Stock" (id, fence) VALUES (1, ${WILD});
       SELECT setval('fenced_lock.token', 10)`,
    );
    const ran = await doctorWhileTokensAreDrawn(database);
    const found = notOk(ran);
    expect(found).toMatchObject([
      { check: 'sequence position', message: expect.stringContaining(`No lock drew the token ${WILD} `) },
    ]);
    const { pool } = database;
    await pool.query(`SET session_replication_role = replica;
      INSERT INTO "Stock" (id, fence) SELECT 2, nextval('fenced_lock.token')`);
    await pool.query(found[0]?.remedy?.replace(/^.*?: |\. If it was drawn.*$/g, '') ?? '');
    const { rows } = await pool.query('SELECT id, fence::int FROM "Stock" ORDER BY id');
    expect(rows[1]).toEqual({ id: 2, fence: 13 });
    expect(rows[0].fence).toBeLessThan(13);
    expect(notOk(await patient.doctor(database.url))).toEqual([]);
  });
});
