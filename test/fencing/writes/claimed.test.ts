import { expect, test } from 'vitest';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';

type Tx = Pick<ShopClient, 'stock'>;

/** Writes for which the row is claimed before. */
const WRITES = {
  'update, with a relation in its condition': (tx: Tx, id: number, fence: bigint) =>
    tx.stock.update({ where: { id, fence, orders: { none: { quantity: 5 } } }, data: { quantity: 9 } }),
  upsert: (tx: Tx, id: number, fence: bigint) =>
    tx.stock.upsert({
      where: { id, fence },
      update: { quantity: 9 },
      create: { product: `another one than ${id}`, quantity: 0 },
    }),
  'delete, with a selection': (tx: Tx, id: number, fence: bigint) =>
    tx.stock.delete({ where: { id, fence }, select: { id: true } }),
};

describeWithShop('a row that is asked for by the fence that it was read with', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test.each(Object.entries(WRITES))('is found, though a claim has changed that by then: %s', async (_, write) => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 10 } }));
    const { fence } = (await shop.row(id)) ?? { fence: 0n };
    expect(fence).toBeGreaterThan(0n);
    expect(await prisma.$withLock(key, (tx) => write(tx, id, fence))).toMatchObject({ id });
  });

  test.each(Object.entries(WRITES))('is not found by another one: %s', async (kind, write) => {
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, async (tx) => ({ other: (await write(tx, id, 1n)).id !== id }));
    await (kind === 'upsert' ? expect(held).resolves.toEqual({ other: true }) : expect(held).rejects.toThrow());
    expect(await shop.row(id)).toMatchObject({ quantity: 10, fence: 0n });
  });
});
