import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { MARK_RUN, NEXT_RUN } from '../../src/database/sql.js';
import { admitByHand } from '../support/admit-by-hand.js';
import { outcome, Stage } from './role-database.js';

const HOUR = 3_600_000;

interface Run {
  readonly now: number;
  /** `undefined`: now. */
  readonly due: number | undefined;
  readonly after: number;
}

describe('runs of a key, once in each interval', () => {
  let app: pg.Client;
  const stage = new Stage('security_runs', async () => {
    await stage.install();
    app = await stage.session('sec_app');
  });

  const read = ({ rows: [row] }: pg.QueryResult<Record<string, string | null>>): Run => ({
    now: Number(row?.['now_ms']),
    due: row?.['due_ms'] == null ? undefined : Number(row['due_ms']),
    after: Number(row?.['after_ms']),
  });
  const next = async (key: string, every: number, shift = 0, atLeast = 0) =>
    read(await app.query(NEXT_RUN, [key, every, shift, atLeast]));

  /** A run that is committed, or what there is instead of it. */
  async function mark(key: string, every: number, atLeast = 0, end = 'COMMIT'): Promise<Run> {
    await app.query(`BEGIN; ${admitByHand({ keys: [key] })}`);
    const run = read(await app.query(MARK_RUN, [key, every, 0, atLeast]));
    await app.query(end);
    return run;
  }
  const setBack = (key: string, ms: number) =>
    stage.admin.query('UPDATE fenced_lock.last_run SET ran_at = ran_at - make_interval(secs => $2) WHERE key = $1', [
      key,
      ms / 1_000,
    ]);

  test('one that was committed makes the next one due in the next interval; one that was rolled back does not', async () => {
    expect((await mark('job', HOUR, 0, 'ROLLBACK')).due).toBeUndefined();
    const first = await mark('job', HOUR);
    expect(first.due).toBeUndefined();
    const second = await mark('job', HOUR);
    expect(second.due).toBe(first.after);
    expect((await next('job', HOUR)).due).toBe(first.after);
    expect((await next('another job', HOUR)).due).toBeUndefined();
  });

  test('a mark keeps nobody away for longer than the own interval, whatever its writer has asked for', async () => {
    const longest = 2 ** 31 - 1;
    const { now } = await mark('suppressed', longest, longest);
    const { due } = await next('suppressed', HOUR, 0, HOUR);
    expect(due).toBe(now + HOUR);
    await setBack('suppressed', HOUR);
    expect((await mark('suppressed', HOUR, HOUR)).due).toBeUndefined();
  });

  test('are marked only behind an admission of their key, in the same transaction', async () => {
    const marking = `SELECT fenced_lock.mark_run('alone', 1000, 0, 0)`;
    expect(await outcome(app, marking)).toBe('55000');
    expect(await outcome(app, admitByHand({ keys: ['another'] }), marking)).toBe('55000');
    expect(await outcome(app, admitByHand({ keys: ['alone'] }))).toBe('ok');
    expect(await outcome(app, marking)).toBe('55000');
    expect(await outcome(app, admitByHand({ keys: ['alone'] }), marking)).toBe('ok');
  });

  test('are not marked behind an admission of a dump, whose xid the transaction has in this cluster', async () => {
    expect(await outcome(app, admitByHand({ keys: ['restored'] }))).toBe('ok');
    const restored = `UPDATE fenced_lock.admission SET xid = pg_current_xact_id(), admitted_at = now() - interval '1 hour'
      WHERE key = 'restored'`;
    expect(await outcome(stage.admin, restored, `SELECT fenced_lock.mark_run('restored', 1000, 0, 0)`)).toBe('55000');
  });

  test.each([
    `next_run(repeat('x', 513), 1000, 0, 0)`,
    `next_run('job', 0, 0, 0)`,
    `next_run('job', 1000, 1000, 0)`,
    `next_run(NULL, 1000, 0, 0)`,
    `next_run('job', 1000, 0, 1001)`,
    `mark_run('job', 1000, 0, -1)`,
    `mark_run('job', 1000, 0, 1001)`,
  ])('refuse %s', async (call) => {
    expect(await outcome(app, admitByHand({ keys: ['job'] }), `SELECT fenced_lock.${call}`)).toBe('22023');
  });

  test.each(['SELECT FROM', 'DELETE FROM', 'TRUNCATE'])('their table is the owner’s alone: %s', async (verb) => {
    expect(await outcome(app, `${verb} fenced_lock.last_run`)).toBe('42501');
  });
});
