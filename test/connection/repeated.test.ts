import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { proxied } from '../support/proxied.js';
import { describeWithShop, Shop } from '../support/shop.js';

interface Session {
  readonly pid: number;
  readonly xid: string | null;
  readonly token: string | null;
}

const SESSION = `SELECT pg_backend_pid() AS pid, pg_current_xact_id_if_assigned()::text AS xid,
  nullif(current_setting('fenced_lock.token', true), '') AS token`;

describeWithShop('a fenced connection, under an extension that repeats $transaction', () => {
  const shop = new Shop();

  test('has the admission of each try on the connection of that try, and not on one that somebody else has now', async () => {
    const pool = shop.pool({ max: 2 });
    const plain = shop.unextended(new PrismaPg(pool));
    const original = plain.$transaction as (...args: unknown[]) => Promise<unknown>;
    const repeating = plain.$extends({
      client: {
        $transaction(...args: unknown[]) {
          const once = () => original.apply(this, args);
          // The first one fails because somebody else is in the key's row.
          return once().catch(once);
        },
      },
    });
    const prisma = shop.extend(repeating);
    const { key } = await shop.product(10);
    await prisma.$withLock(key, () => {});
    const blocker = await shop.admin.connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT 1 FROM fenced_lock.admission WHERE key = $1 FOR UPDATE', [key]);
    const spare = await pool.connect();
    const held = prisma.$withLock(key, async (tx, lock) => {
      const [session] = await tx.$queryRawUnsafe<[Session]>(SESSION);
      return { session, token: lock.token };
    });
    await shop.blocked('fenced_lock.admit(');
    // First in the line for the connection that the failed try gives back; the next try has to take the other one.
    const client = await pool.connect();
    onTestFinished(() => client.release(true));
    await client.query('BEGIN');
    await blocker.query('ROLLBACK');
    blocker.release();
    spare.release();
    const { session: own, token } = await held;
    const { rows } = await client.query<Session>(SESSION);
    expect(rows).toEqual([{ pid: expect.not.toBeOneOf([own.pid]), xid: null, token: null }]);
    expect(own).toMatchObject({ xid: expect.any(String), token: String(token) });
  });
});

describeWithShop('a connection of the pool that was reset on its way, unnoticed', () => {
  const shop = new Shop();

  test('costs a lock nothing: its transaction begins on another one', async () => {
    const { app } = inject('postgres');
    const { prisma, proxy } = await proxied(shop, app, { pool: { max: 1 } });
    const { key } = await shop.product(1);
    const lock = await prisma.$lock(key);
    const pid = () => lock.$transaction((tx) => tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`);
    const [before] = await pid();
    let cuts = 0;
    // As by something on the way that has forgotten the connection: nobody knows until something is sent.
    proxy.onData('toServer', () => (cuts++ === 0 ? 'cut' : 'forward'));
    const [after] = await pid();
    await lock.release();
    expect(after.pid).not.toBe(before.pid);
  });
});
