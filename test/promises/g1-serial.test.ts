import { describe, expect, test } from 'vitest';
import { Shop, withoutRedis } from '../support/shop.js';

describe.skipIf(withoutRedis)('G1: committed transactions under one key are serial', () => {
  const shop = new Shop();

  test('read-modify-write by 20 callers of two clients loses no update', async () => {
    const { id, key } = await shop.product(100);
    const buyers = [shop.client().prisma, shop.client().prisma];
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (buyers[index % 2] as (typeof buyers)[0]).$withLock(key, async (tx, lock) => {
          const stock = await tx.stock.findUniqueOrThrow({ where: { id } });
          await tx.stock.update({ where: { id }, data: { quantity: stock.quantity - 1 } });
          return lock.token;
        }),
      ),
    );
    expect(new Set(tokens).size).toBe(20);
    expect(await shop.row(id)).toMatchObject({ quantity: 80, fence: tokens.reduce((a, b) => (a > b ? a : b)) });
  });
});
