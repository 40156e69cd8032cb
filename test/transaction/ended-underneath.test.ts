import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import { expect, inject, test } from 'vitest';
import { TransactionAbortedError } from '../../src/index.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a transaction that something else has ended', () => {
  const shop = new Shop();

  /** A client, and a way past the lock to its only connection. */
  function passedBy() {
    const pool = shop.pool({ max: 1 });
    let connection: pg.PoolClient | undefined;
    pool.on('acquire', (client) => {
      connection = client;
    });
    const rescue = new PrismaPg({ connectionString: inject('postgres').app });
    const { prisma } = shop.client({ adapter: new PrismaPg(pool), rescue });
    return { prisma, send: (text: string) => connection?.query(text) };
  }

  test('is not reported as committed, though its connection answers well', async () => {
    const { prisma, send } = passedBy();
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      await tx.$queryRaw`SELECT 1 / 0`.catch(() => {});
      await send('ROLLBACK');
    });
    await expect(held).rejects.toMatchObject({ constructor: TransactionAbortedError, reason: 'ended' });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('and of which a part was committed: onUnknown, and an error of the function is the cause', async () => {
    const { prisma, send } = passedBy();
    const { id, key } = await shop.product(10);
    const failure = new Error('and then');
    const ran: string[] = [];
    const held = prisma.$withLock(key, async (tx, lock) => {
      lock.onUnknown(() => ran.push('onUnknown'));
      lock.afterRollback(() => ran.push('afterRollback'));
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      await send('COMMIT');
      throw failure;
    });
    await expect(held).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION', cause: failure });
    expect(ran).toEqual(['onUnknown']);
    expect((await shop.row(id))?.quantity).toBe(9);
  });
});
