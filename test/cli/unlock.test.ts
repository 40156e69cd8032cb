import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { admitByHand } from '../support/admit-by-hand.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { HOSTILE, isHarmless, Operator } from './operator.js';

const ADMIT = (key: string) => admitByHand({ keys: [key], leaseTime: 60_000, workTime: 60_000, waitTime: 60_000 });

describeWithShop('unlock', () => {
  const shop = new Shop();

  test("ends a key's first transaction, whose lease Redis has lost", async () => {
    const operator = new Operator(shop);
    const { key } = await shop.product(1);
    const pool = new pg.Pool({ connectionString: inject('postgres').app });
    shop.closeLater(() => pool.end());
    const holder = await pool.connect();
    holder.on('error', () => {});
    const { rows } = await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await holder.query('BEGIN');
    await holder.query(ADMIT(key));
    const { json } = await operator.run('unlock', key, '--json');
    holder.release(true);
    expect(json).toMatchObject({
      before: { holder: null, token: null, transaction: null },
      ended: [rows[0]?.pid],
      token: { before: null, after: expect.any(String) },
    });
  });

  test('deletes what somebody else has written in the place of the lease; ls shows it', async () => {
    const operator = new Operator(shop);
    const { key } = await shop.product(1);
    await shop.redis().rpush(`${operator.keyPrefix}{${key}}:lease`, 'not ours');
    expect((await operator.run('ls')).out).toContain('(a value that is not a lease)');
    const problem = expect.stringContaining('a value that this package did not write');
    expect((await operator.run('ls', '--json')).json).toMatchObject({ keys: [{ key, holder: null, problem }] });
    expect((await operator.run('unlock', key, '--json')).json).toMatchObject({ leaseTaken: true });
    expect(await operator.client().$withLock(key, () => 'in')).toBe('in');
  });

  test('gets past all who stand in a row for it', async () => {
    const operator = new Operator(shop);
    const { key } = await shop.product(1);
    await operator.client().$withLock(key, () => {});
    const pool = new pg.Pool({ connectionString: inject('postgres').app });
    // Their ends may be heard when they are back in the pool.
    pool.on('error', () => {});
    shop.closeLater(() => pool.end());
    const sessions = await Promise.all([1, 2, 3].map(() => pool.connect()));
    const pids: number[] = [];
    const waiting: Array<Promise<unknown>> = [];
    for (const session of sessions) {
      session.on('error', () => {});
      const { rows } = await session.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      const [pid = 0] = rows.map((row) => row.pid);
      pids.push(pid);
      await session.query('BEGIN');
      const admitted = session.query(ADMIT(key)).catch(() => {});
      if (pids.length === 1) await admitted;
      else {
        waiting.push(admitted);
        await eventually('it waits', async () => {
          const sql = 'SELECT cardinality(pg_blocking_pids($1)) > 0 AS blocked';
          return (await shop.admin.query<{ blocked: boolean }>(sql, [pid])).rows[0]?.blocked;
        });
      }
    }
    const { json } = await operator.run('unlock', key, '--json');
    await shop.admin.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [pids]);
    await Promise.all(waiting);
    for (const session of sessions) session.release(true);
    const ended = json['ended'] as number[];
    expect(json).toMatchObject({ ok: true, token: { before: expect.any(String), after: expect.any(String) } });
    expect(pids).toEqual(expect.arrayContaining(ended));
    expect(ended).toContain(pids[0]);
  });

  test.each(HOSTILE)('and ls show a key that would deceive, by %s, in harmless lines', async (_, key) => {
    const operator = new Operator(shop);
    const handle = await operator.client().$lock(key);
    const [list, listed] = [await operator.run('ls'), await operator.run('ls', '--json')];
    const text = await operator.run('unlock', '--', key);
    const document = await operator.run('unlock', '--json', '--', key);
    await handle.release();
    expect([text.code, document.code]).toEqual([0, 0]);
    expect(isHarmless(list.out + listed.out + text.out + document.out)).toBe(true);
    // Two servers and the headings, or nine facts and what was done: a line each.
    expect([list, text].map(({ out }) => out.trimEnd().split('\n').length)).toEqual([2 + 1 + 1, 2 + 9 + 3]);
    expect(text.out).toContain('the lease was taken');
    expect(listed.json).toMatchObject({ keys: [{ key, token: String(handle.token) }] });
    expect(document.json).toMatchObject({ before: { key }, leaseTaken: false });
  });
});
