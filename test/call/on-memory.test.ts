import { expect, test } from 'vitest';
import { memoryStore } from '../../src/index.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('locks with a memory store', () => {
  const shop = new Shop();

  /** Reads and writes in two statements, which loses updates without a lock. */
  const sell = (prisma: ShopClient, { id, key }: { id: number; key: string }) =>
    prisma.$withLock(key, async (tx, { token }) => {
      const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
      await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
      return token;
    });

  test('are serial among the clients of one store, in the order of their tokens', async () => {
    const memory = memoryStore();
    const clients = [0, 1, 2].map(() => shop.client({ redis: memory }).prisma);
    const product = await shop.product(60);
    const tokens = await Promise.all(Array.from({ length: 60 }, (_, n) => sell(clients[n % 3] as ShopClient, product)));
    expect(new Set(tokens).size).toBe(60);
    expect((await shop.row(product.id))?.quantity).toBe(0);
    expect(await clients[0]?.$locks.list()).toEqual([]);
  });

  test('of two stores, as two processes would have, lose no update, and neither side ends the other', async () => {
    const product = await shop.product(40);
    const clients = [0, 1].map(() => shop.client({ redis: memoryStore() }));
    const inside = gate();
    const slow = clients[0]?.prisma.$withLock(product.key, async (tx) => {
      inside.open();
      const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id: product.id } });
      // Longer than the pause after which a former holder of the own room would be ended.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await tx.stock.update({ where: { id: product.id }, data: { quantity: quantity - 1 } });
    });
    await inside.opened;
    const rest = Array.from({ length: 39 }, (_, n) => sell(clients[n % 2]?.prisma as ShopClient, product));
    await Promise.all([slow, ...rest]);
    expect((await shop.row(product.id))?.quantity).toBe(0);
    expect(clients.flatMap(({ events }) => events.filter(({ type }) => type === 'backend-ended'))).toEqual([]);
  });

  test('survive a flush: the holder is told, or has committed, and no update is lost', async () => {
    const memory = memoryStore();
    const product = await shop.product(20);
    const { prisma } = shop.client({ redis: memory, defaults: { leaseTime: 300 } });
    const other = shop.client({ redis: memory, defaults: { leaseTime: 300 } }).prisma;
    const sales = Array.from({ length: 20 }, async (_, n) => {
      const outcome = await sell(n % 2 === 0 ? prisma : other, product).then(
        () => 1,
        () => 0,
      );
      if (n % 5 === 0) memory.flush();
      return outcome;
    });
    const sold = (await Promise.all(sales)).reduce<number>((sum, one) => sum + one, 0);
    expect((await shop.row(product.id))?.quantity).toBe(20 - sold);
  });
});
