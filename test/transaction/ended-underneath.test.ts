import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import { expect, inject, test } from 'vitest';
import { TransactionAbortedError } from '../../src/index.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a transaction that something else has ended', () => {
  const shop = new Shop();

  test('is not reported as committed, though its connection answers well', async () => {
    const pool = shop.pool({ max: 1 });
    let connection: pg.PoolClient | undefined;
    pool.on('acquire', (client) => {
      connection = client;
    });
    const rescue = new PrismaPg({ connectionString: inject('postgres').app });
    const { prisma } = shop.client({ adapter: new PrismaPg(pool), rescue });
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      await tx.$queryRaw`SELECT 1 / 0`.catch(() => {});
      await connection?.query('ROLLBACK');
    });
    await expect(held).rejects.toMatchObject({ constructor: TransactionAbortedError, reason: 'ended' });
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
