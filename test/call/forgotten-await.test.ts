import { expect, test } from 'vitest';
import type { LockTx } from '../../src/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

type Tx = LockTx<ShopClient>;

describeWithShop('a write that is not awaited', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  const set = (id: number, quantity = 0) => ({ where: { id }, data: { quantity } });

  const FORGOTTEN: Record<string, (tx: Tx, id: number) => unknown> = {
    'stock.update': (tx, id) => void tx.stock.update(set(id)),
    'stock.updateMany': (tx, id) => void tx.stock.updateMany(set(id)),
    'stock.createMany': (tx) => void tx.stock.createMany({ data: [{ product: 'x', quantity: 1 }] }),
    $executeRaw: (tx, id) => void tx.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id}`,
    $queryRawUnsafe: (tx, id) => void tx.$queryRawUnsafe('SELECT 1 FROM "Stock" WHERE id = $1 FOR UPDATE', id),
  };

  test.each(Object.entries(FORGOTTEN))('rolls back, and is named: %s', async (name, forget) => {
    const { id, key } = await shop.product(10);
    const aborted = { code: 'TRANSACTION_ABORTED', key, message: expect.stringContaining(`\`${name}\``) };
    const work = async (tx: Tx) => {
      await tx.stock.update(set(id, 5));
      forget(tx, id);
    };
    await expect(prisma.$withLock(key, work)).rejects.toMatchObject(aborted);
    await expect(prisma.$withLock(key, () => prisma.$withLock(key, work))).rejects.toMatchObject(aborted);
    const handle = await prisma.$lock(key);
    await expect(handle.$transaction(work)).rejects.toMatchObject(aborted);
    await handle.release();
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test("is not told in the place of the function's own error", async () => {
    const { id, key } = await shop.product(10);
    const work = (tx: Tx) => {
      void tx.stock.update(set(id));
      throw new Error('sold out');
    };
    await expect(prisma.$withLock(key, work)).rejects.toThrow('sold out');
  });

  const later = <T>(operation: PromiseLike<T>): Promise<T> =>
    new Promise((...settle) => void operation.then(...settle));

  const AWAITED: Record<string, (tx: Tx, id: number) => unknown> = {
    'is returned': (tx, id) => tx.stock.update(set(id)),
    'is returned from an async function': async (tx, id) => tx.stock.update(set(id)),
    'is one of Promise.all': (tx, id) => Promise.all([tx.stock.update(set(id)), tx.stock.count()]),
    'is one of Promise.allSettled, of a list': (tx, id) =>
      Promise.allSettled([1, 0].map((q) => tx.stock.update(set(id, q)))),
    'is handed to a helper': (tx, id) => later(tx.stock.update(set(id))),
    'is made early and awaited late': async (tx, id) => {
      const update = tx.stock.update(set(id));
      await tx.stock.findMany();
      await update;
    },
    'is caught': (tx, id) => tx.stock.update(set(id)).catch(() => {}),
    'has a finally': (tx, id) => tx.stock.update(set(id)).finally(() => {}),
    'is raw': (tx, id) => tx.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id}`,
    'is raw and returns rows': (tx, id) => tx.$queryRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id} RETURNING id`,
    'goes on to a relation': async (tx, id) => {
      await tx.stock.update(set(id));
      const data = { buyer: 'x', quantity: 1, stockId: id };
      expect(await tx.order.create({ data }).stock()).toMatchObject({ id });
    },
    'stands beside a read that is dropped': async (tx, id) => {
      void tx.stock.findMany();
      await tx.stock.update(set(id));
    },
  };

  test.each(Object.entries(AWAITED))('is not seen in one that %s', async (_, work) => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, (tx) => work(tx, id));
    expect((await shop.row(id))?.quantity).toBe(0);
  });

  test("is not seen in an extension's own methods", async () => {
    const { id, key } = await shop.product(10);
    const extended = prisma.$extends({
      model: {
        stock: {
          async sellOut(of: number) {
            return await (this as unknown as Tx['stock']).update(set(of));
          },
        },
      },
      query: { stock: { update: ({ args, query }) => query(args) } },
    });
    await extended.$withLock(key, async (tx) => {
      expect(tx.stock).toBe(tx.stock);
      expect('sellOut' in tx.stock).toBe(true);
      expect(tx.stock.fields.quantity.name).toBe('quantity');
      await tx.stock.sellOut(id);
    });
    expect((await shop.row(id))?.quantity).toBe(0);
  });
});
