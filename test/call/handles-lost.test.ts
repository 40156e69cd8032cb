import { expect, inject, test } from 'vitest';
import { LockLostError, StaleTokenError } from '../../src/index.js';
import { type PostgresServer, startPostgres } from '../support/servers/index.js';
import { atWork, describeWithShop, Shop, sale } from '../support/shop.js';
import { setUpShop } from '../support/shop-database.js';
import { forget, registered, sellOne } from './handle-work.js';
import { named } from './waits-in-postgres.js';

describeWithShop('a handle whose lease is gone', () => {
  const shop = new Shop();
  // No renewal finds out before the handle does.
  const { prisma } = shop.client({ defaults: { leaseTime: 60_000 } });

  test('is stale as soon as another holder was admitted: nothing is written, now or later', async () => {
    const { id, key } = await shop.product(10);
    const lock = await prisma.$lock(key);
    await sellOne(lock, id);
    await forget(shop, key);
    const other = await shop.client().prisma.$withLock(key, async (tx, { token }) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      return token;
    });
    const error = await sellOne(lock, id).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StaleTokenError);
    expect(error).toMatchObject({ reason: 'superseded', key, token: lock.token });
    // It stays so, and the handle says why.
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', key, cause: error });
    // What is known is what Postgres said, and not where Redis has the lease.
    expect((lock.signal.reason as Error).message).toContain('Postgres has refused its token');
    expect((lock.signal.reason as Error).message).not.toContain('Redis');
    await expect(sellOne(lock, id)).rejects.toBe(lock.signal.reason);
    expect(lock.remaining()).toBe(0);
    expect(await shop.row(id)).toEqual({ quantity: 5, fence: other });
    await lock.release();
  });

  test('loses no update to a holder that came in between two of its transactions, or in one', async () => {
    const { id, key } = await shop.product(20);
    const lock = await prisma.$lock(key);
    await forget(shop, key);
    const contender = shop.client().prisma;
    const sales = [
      ...Array.from({ length: 5 }, () => sellOne(lock, id)),
      ...Array.from({ length: 5 }, () => contender.$withLock(key, sale(id))),
    ];
    const sold = (await Promise.allSettled(sales)).filter(({ status }) => status === 'fulfilled').length;
    expect(sold).toBeGreaterThanOrEqual(5);
    expect((await shop.row(id))?.quantity).toBe(20 - sold);
    await lock.release();
  });

  test.each(['RepeatableRead', 'ReadCommitted'] as const)(
    'is stale under %s too where it waited for the transaction of the new holder',
    async (isolationLevel) => {
      const { id, key } = await shop.product(10);
      const handled = named(shop);
      const lock = await handled.prisma.$lock(key, { isolationLevel, leaseTime: 60_000 });
      await forget(shop, key);
      const { held, goOn } = await atWork(shop.client().prisma, key, (tx) =>
        tx.stock.update({ where: { id }, data: { quantity: 5 } }),
      );
      const late = sellOne(lock, id).catch((error: unknown) => error);
      await handled.waits();
      goOn();
      await held;
      expect(await late).toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded' });
      expect((await shop.row(id))?.quantity).toBe(5);
      await lock.release();
    },
  );

  test('is stale where the row of its key was deleted', async () => {
    const { id, key } = await shop.product(10);
    const lock = await prisma.$lock(key);
    await shop.admin.query('DELETE FROM fenced_lock.admission WHERE key = $1', [key]);
    await expect(sellOne(lock, id)).rejects.toMatchObject({
      code: 'STALE_TOKEN',
      reason: 'forgotten',
      message: expect.stringContaining('Postgres has no row of the lock'),
    });
    expect((await shop.row(id))?.quantity).toBe(10);
    await lock.release();
  });

  test('hears of it by its signal, which says that Redis has it no more', async () => {
    const { id, key } = await shop.product(10);
    const lock = await prisma.$lock(key, { leaseTime: 1_500 });
    const lost = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
    expect(lock.remaining()).toBeGreaterThan(0);
    expect(Number.isInteger(lock.remaining())).toBe(true);
    await forget(shop, key);
    await lost;
    expect(lock.signal.reason).toBeInstanceOf(LockLostError);
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', key, reason: 'gone' });
    expect(lock.remaining()).toBe(0);
    await expect(sellOne(lock, id)).rejects.toBe(lock.signal.reason);
    await lock.release();
  });
});

describeWithShop('a handle through a crash of Postgres', () => {
  let server: PostgresServer;
  let app = '';
  const shop = new Shop(() => ({ postgres: app, admin: server.url, redis: inject('redis').url as string }));

  test.beforeAll(async () => {
    // Nothing but a commit that waits for it brings the log to disk.
    server = await startPostgres({ settings: { wal_writer_delay: '10s', wal_writer_flush_after: '1GB' } });
    app = await setUpShop(server);
    shop.closeLater(() => server.stop());
  });

  test('its token is not issued a second time, even to a role that does not wait for its commits', async () => {
    const { key } = await shop.product(10);
    // Before the crash that counts: sessions of this role commit without waiting for the disk.
    await shop.admin.query('ALTER ROLE shop_app SET synchronous_commit = off');
    await shop.admin.query('CHECKPOINT');
    const lock = await shop.client().prisma.$lock(key);
    await server.killHard();
    await server.start();
    expect((await registered(shop, key))?.token).toBe(lock.token);
    await forget(shop, key);
    const next = shop.client().prisma;
    const tokens = [];
    for (let turn = 0; turn < 3; turn++) tokens.push(await next.$withLock(key, (_, { token }) => token));
    expect(tokens.every((token) => token > lock.token)).toBe(true);
  });
});
