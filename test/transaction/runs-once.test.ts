import { expect, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a work that has begun', () => {
  const shop = new Shop();

  test.each(['55P03', '40001', '57P01'])('and fails with %s is not begun again', async (code) => {
    const { key } = await shop.product(10);
    let runs = 0;
    const held = shop.client().prisma.$withLock(key, async (tx) => {
      runs++;
      await tx.$executeRawUnsafe(`DO $$ BEGIN RAISE EXCEPTION 'no sale' USING ERRCODE = '${code}'; END $$`);
    });
    await expect(held).rejects.toThrow('no sale');
    expect(runs).toBe(1);
  });
});
