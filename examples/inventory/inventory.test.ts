import { describe, expect, inject, test } from 'vitest';
import { describeWithShop, Shop } from '../../test/support/shop.js';
import { createClient, type ShopClient } from './client.js';
import { OutOfStockError } from './out-of-stock.js';
import { sellAtomic } from './sell-atomic.js';
import { sellReadModifyWrite } from './sell-read-modify-write.js';
import { sellWithOrder } from './sell-with-order.js';

const BUYERS = 24;
const UNITS = 15;

describeWithShop('the inventory example', () => {
  const shop = new Shop();

  /** All at once, from two clients by turns. Returns how many of them bought; being out of stock is no failure. */
  async function rush(sell: (prisma: ShopClient, buyer: string) => Promise<unknown>): Promise<number> {
    const clients = [shop.client().prisma, shop.client().prisma] as const;
    const results = await Promise.allSettled(
      Array.from({ length: BUYERS }, (_, n) => sell(clients[n % 2 === 0 ? 0 : 1], `buyer ${n}`)),
    );
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(OutOfStockError);
    }
    return results.filter(({ status }) => status === 'fulfilled').length;
  }

  async function orders(stockId: number): Promise<{ buyer: string; quantity: number }[]> {
    const { rows } = await shop.admin.query('SELECT buyer, quantity FROM "Order" WHERE "stockId" = $1', [stockId]);
    return rows as { buyer: string; quantity: number }[];
  }

  describe('the atomic update', () => {
    test('never sells more than there is', async () => {
      const { id } = await shop.product(UNITS);
      expect(await rush((prisma) => sellAtomic(prisma, id, 1))).toBe(UNITS);
      expect(await shop.row(id)).toMatchObject({ quantity: 0 });
    });

    test('refuses a sale that is larger than the stock, and takes nothing', async () => {
      const { id } = await shop.product(2);
      await expect(sellAtomic(shop.client().prisma, id, 3)).rejects.toThrow(OutOfStockError);
      expect(await shop.row(id)).toEqual({ quantity: 2, fence: 0n });
    });
  });

  describe('read-modify-write', () => {
    test('never sells more than there is', async () => {
      const { id } = await shop.product(UNITS);
      expect(await rush((prisma) => sellReadModifyWrite(prisma, id, (quantity) => quantity - 1))).toBe(UNITS);
      expect(await shop.row(id)).toMatchObject({ quantity: 0 });
    });

    test('works out each quantity from the one before it, however long that takes', async () => {
      const { id } = await shop.product(BUYERS);
      const seen: number[] = [];
      await rush((prisma) =>
        sellReadModifyWrite(prisma, id, async (quantity) => {
          seen.push(quantity);
          await new Promise((resolve) => setTimeout(resolve, 5));
          return quantity - 1;
        }),
      );
      expect(seen).toEqual(Array.from({ length: BUYERS }, (_, n) => BUYERS - n));
    });
  });

  describe('an order and its units', () => {
    test('an order exists exactly for each unit sold', async () => {
      const { id } = await shop.product(UNITS);
      const sold = await rush((prisma, buyer) => sellWithOrder(prisma, { stockId: id, buyer, quantity: 1 }));
      expect(sold).toBe(UNITS);
      expect(await shop.row(id)).toMatchObject({ quantity: 0 });
      expect(new Set((await orders(id)).map(({ buyer }) => buyer)).size).toBe(UNITS);
      expect(await orders(id)).toHaveLength(UNITS);
    });

    test('a sale that throws leaves neither order nor decrement', async () => {
      const { id } = await shop.product(1);
      const sale = sellWithOrder(shop.client().prisma, { stockId: id, buyer: 'too many', quantity: 2 });
      await expect(sale).rejects.toThrow(OutOfStockError);
      expect(await orders(id)).toEqual([]);
      expect(await shop.row(id)).toEqual({ quantity: 1, fence: 0n });
    });
  });

  test('the client of the example sells', async () => {
    const { id } = await shop.product(1);
    const { prisma, redis } = createClient(inject('postgres').app, inject('redis').url);
    try {
      expect(await sellAtomic(prisma, id, 1)).toBe(0);
    } finally {
      await prisma.$disconnect();
      redis.disconnect();
    }
  });
});
