import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock, TransactionAbortedError } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a transaction that something else has ended', () => {
  const shop = new Shop();

  test('is not reported as committed, though its connection answers well', async () => {
    const connectionString = inject('postgres').app;
    const pool = new pg.Pool({ connectionString, max: 1 });
    let connection: pg.PoolClient | undefined;
    pool.on('acquire', (client) => {
      connection = client;
    });
    shop.closeLater(() => pool.end());
    const plain = new PrismaClient({ adapter: new PrismaPg(pool) });
    const prisma = plain.$extends(fencedLock({ redis: shop.redis(), rescue: new PrismaPg({ connectionString }) }));
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
