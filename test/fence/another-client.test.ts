import { expect, test } from 'vitest';
import { fencedLock, InvalidOptionError } from '../../src/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('an extension whose $transaction begins on the client that it was made for', () => {
  const shop = new Shop();

  test('is refused, because writes would go past the fence: the function does not run', async () => {
    const { plain } = shop.client();
    const original = plain.$transaction as (...args: unknown[]) => unknown;
    const extended = plain.$extends({
      client: { $transaction: (...args: unknown[]) => original.apply(plain, args) },
    });
    const prisma = extended.$extends(fencedLock({ redis: shop.redis() })) as unknown as ShopClient;
    const { id, key } = await shop.product(10);
    let ran = false;
    const held = prisma.$withLock(key, async (tx) => {
      ran = true;
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    await expect(held).rejects.toMatchObject({
      constructor: InvalidOptionError,
      code: 'INVALID_OPTION',
      option: '$transaction',
    });
    expect(ran).toBe(false);
    expect((await shop.row(id))?.quantity).toBe(10);
    // And it stands in nobody's way.
    expect(await shop.client().prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
  });
});
