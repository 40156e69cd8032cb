import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';

type Tx = Pick<ShopClient, 'stock'>;
const FRESHER = 9_000_000_000_000_000_000n;

const WRITES = {
  'update, with a relation in its condition': (tx: Tx, product: string) =>
    tx.stock.update({ where: { product, orders: { none: { quantity: 5 } } }, data: { quantity: 9 } }),
  'delete, with a selection': (tx: Tx, product: string) =>
    tx.stock.delete({ where: { product }, select: { id: true } }),
};

describeWithShop('a fresher row that comes behind a claim which met none', () => {
  const shop = new Shop();

  test.each(Object.entries(WRITES))('is not met by the write: %s', async (_, write) => {
    const product = randomUUID();
    let came = false;
    const client = shop.client().prisma.$extends({
      query: {
        stock: {
          // The claim's look for a fresher row is the last that comes before the write.
          async findFirst({ args, query }) {
            const answer = await query(args);
            if (came) return answer;
            came = true;
            await shop.admin.query('INSERT INTO "Stock" (product, quantity, fence) VALUES ($1, 50, $2)', [
              product,
              FRESHER,
            ]);
            return answer;
          },
        },
      },
    }) as unknown as ShopClient;
    await expect(client.$withLock(product, (tx) => write(tx, product))).rejects.toMatchObject({ code: 'P2025' });
    expect(came).toBe(true);
    const { rows } = await shop.admin.query('SELECT quantity, fence FROM "Stock" WHERE product = $1', [product]);
    expect(rows).toEqual([{ quantity: 50, fence: String(FRESHER) }]);
  });
});
