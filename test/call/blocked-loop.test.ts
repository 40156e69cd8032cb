import { expect, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

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
