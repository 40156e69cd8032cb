import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a holder whose event loop stood still for longer than its lease', () => {
  const shop = new Shop();

  test.each([
    ['before its first statement', 0],
    ['behind a statement', 1],
  ])('%s hears LOCK_LOST, and the next query of its pool works', async (_, statements) => {
    const { id, key } = await shop.product(10);
    const connectionString = inject('postgres').app;
    const pool = new pg.Pool({ connectionString, max: 1 });
    shop.closeLater(() => pool.end());
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool) }).$extends(
      fencedLock({ redis: shop.redis(), rescue: new PrismaPg({ connectionString }) }),
    );
    for (let round = 0; round < 3; round++) {
      const held = prisma.$withLock(
        key,
        async (tx) => {
          for (let count = 0; count < statements; count++) await tx.stock.findUniqueOrThrow({ where: { id } });
          const until = performance.now() + 450;
          while (performance.now() < until);
          await tx.stock.update({ where: { id }, data: { quantity: 5 } });
        },
        { leaseTime: 150 },
      );
      await expect(held).rejects.toMatchObject({ code: 'LOCK_LOST', key });
      expect(await prisma.stock.count({ where: { id } })).toBe(1);
    }
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});

describeWithShop('a function that blocks the event loop for longer than its timeout', () => {
  const shop = new Shop();

  test.each([
    ['returns', 0],
    ['sends another statement', 1],
  ])('and then %s is rolled back: TRANSACTION_ABORTED', async (_, statements) => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client();
    const held = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 5 } });
        const until = performance.now() + 400;
        while (performance.now() < until);
        for (let count = 0; count < statements; count++) await tx.stock.findUniqueOrThrow({ where: { id } });
      },
      { timeout: 300 },
    );
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'timeout', key });
    expect((await shop.row(id))?.quantity).toBe(10);
    expect(await prisma.$withLock(key, () => 'in')).toBe('in');
  });
});
