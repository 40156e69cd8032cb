import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { END_BACKEND, END_BLOCKERS, OWN_TRANSACTION, START_EPOCH } from '../../src/database/sql.js';
import { admitByHand } from '../support/admit-by-hand.js';
import { FenceWorld } from '../support/fence-world.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('the statements that end backends', () => {
  const shop = new Shop();
  // A lost COMMIT of another file, in the same database, would be taken for one before a crash.
  const world = new FenceWorld('sql_epoch');

  async function session(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: inject('postgres').app });
    client.on('error', () => {});
    await client.connect();
    shop.closeLater(() => client.end().catch(() => {}));
    return client;
  }

  async function begin(client: pg.Client): Promise<{ pid: number; xid: string }> {
    await client.query('BEGIN');
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid, pg_current_xact_id()::text AS xid');
    return rows[0] as { pid: number; xid: string };
  }

  test('a backend is ended in its transaction, and in no other', async () => {
    const [rescue, holder, bystander] = [await session(), await session(), await session()];
    const [own, foreign] = [await begin(holder), await begin(bystander)];
    expect((await rescue.query(END_BACKEND, [own.pid, foreign.xid, null])).rowCount).toBe(0);
    expect((await rescue.query(END_BACKEND, [own.pid, own.xid, randomUUID()])).rowCount).toBe(0);
    await holder.query('SELECT 1');
    expect((await rescue.query(END_BACKEND, [own.pid, own.xid, null])).rows).toEqual([
      { pid: own.pid, working: false, ended: true },
    ]);
    // It is gone, not about to go.
    const { rowCount } = await shop.admin.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [own.pid]);
    expect(rowCount).toBe(0);
    await bystander.query('COMMIT');
  });

  test.each([
    ['whose work waits for a bystander ends nobody', false, 0, 'committed'],
    ['in its admission does not end one that began after the lease', true, 60_000, 'committed'],
    ['in its admission ends one that began before the lease', true, 0, 'ended'],
    ['whose backend is in another admission by now ends nobody', true, 0, 'committed', 'another'],
  ])('a holder %s', async (_, inAdmission, age, fate, transaction = 'own') => {
    const { id, key } = await shop.product(10);
    await shop.client().prisma.$withLock(key, () => {});
    const [rescue, holder, other] = [await session(), await session(), await session()];
    await holder.query('BEGIN');
    const [own] = (await holder.query<{ pid: number; began: string }>(OWN_TRANSACTION)).rows;
    if (transaction === 'another') await holder.query('ROLLBACK; BEGIN');
    await begin(other);
    const admission = { keys: [key], leaseTime: 60_000, workTime: 60_000, waitTime: 2_000 };
    const admit = (client: pg.Client) => client.query(admitByHand({ ...admission, holders: [randomUUID()] }));
    await (inAdmission ? admit(other) : other.query('SELECT 1 FROM "Stock" WHERE id = $1 FOR UPDATE', [id]));
    const waits = inAdmission ? admit(holder) : holder.query('SELECT 2 FROM "Stock" WHERE id = $1 FOR UPDATE', [id]);
    waits.catch(() => {});
    await shop.blocked(inAdmission ? 'fenced_lock.admit' : 'SELECT 2 FROM "Stock"');
    await rescue.query(END_BLOCKERS, [own?.pid, age, own?.began, null, null]);
    const outcome = await other.query('COMMIT').then(
      () => 'committed',
      () => 'ended',
    );
    expect(outcome).toBe(fate);
    await waits;
    await holder.query('ROLLBACK');
  });

  test('an epoch that a crash has emptied is begun again by the next lock, and nobody can hold it up for long', async () => {
    const [rescue, bystander] = [await world.session(), await world.session()];
    await world.admin.query('DELETE FROM fenced_lock.epoch');
    await bystander.query('BEGIN');
    await bystander.query(START_EPOCH);
    await expect(rescue.query(START_EPOCH)).rejects.toMatchObject({ code: '55P03' });
    await bystander.query('ROLLBACK');
    await world.client().$withLock('epoch', () => {});
    await expect
      .poll(async () => (await world.admin.query('SELECT 1 FROM fenced_lock.epoch')).rowCount, { timeout: 5_000 })
      .toBe(1);
  });
});
