import { expect, test } from 'vitest';
import { forget } from '../call/handle-work.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('G1: committed transactions under one key are serial', () => {
  const shop = new Shop();

  test('a transaction of a former holder that stands in the key is ended by the next one', async () => {
    const { id, key } = await shop.product(10);
    const frozen = shop.client().prisma;
    const contender = shop.client();
    const inside = gate();
    const late = gate();
    const held = frozen.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      inside.open();
      await late.opened;
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
    });
    // It hears of its end at once.
    held.catch(() => {});
    await inside.opened;
    await forget(shop, key);
    await contender.prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    late.open();
    await expect(held).rejects.toThrow();
    expect((await shop.row(id))?.quantity).toBe(9);
    expect(contender.events.map(({ type }) => type)).toContain('backend-ended');
  });
});
