import { expect, test } from 'vitest';
import type { LockTx } from '../../src/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

type Tx = LockTx<ShopClient>;

// Prisma makes a batch of the operations of one tick, stops at the first that fails, and resolves the rest to `undefined`; without a
// condition on the fence also raw SQL.
describeWithShop('an operation that Prisma has not sent, because another one of its batch had failed', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  /** Its writes are not hooked, as those of tables with a guard. Those that are hooked are sent one after the other. */
  const { prisma: unfenced } = shop.client({ models: [] });
  const add = (id: number) => ({ where: { id }, data: { quantity: { increment: 1 } } });
  const NONE = -1;
  const bothSettled = (tx: Tx, id: number) =>
    Promise.allSettled([tx.stock.update(add(NONE)), tx.stock.update(add(id))]);

  const SKIPPED: Record<string, readonly [string, string, (tx: Tx, id: number) => unknown]> = {
    'in Promise.allSettled': ['stock.update', 'stock.update', bothSettled],
    'beside one whose error is caught': [
      'order.delete',
      'stock.updateMany',
      (tx, id) => Promise.all([tx.order.delete({ where: { id: NONE } }).catch(() => {}), tx.stock.updateMany(add(id))]),
    ],
    'as a read, whose answer the function relies on': [
      'order.delete',
      'order.aggregate',
      async (tx, id) => {
        const missing = tx.order.delete({ where: { id: NONE } }).catch(() => {});
        const [, orders] = await Promise.all([missing, tx.order.count()]);
        if (!(orders >= 0)) await tx.stock.update(add(id));
      },
    ],
  };

  test.each(Object.entries(SKIPPED))('rolls back, and both are named: %s', async (_, [failed, skipped, work]) => {
    const { id, key } = await shop.product(10);
    await expect(unfenced.$withLock(key, (tx) => work(tx, id))).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
      reason: 'skipped-operation',
      key,
      message: expect.stringContaining(`\`${skipped}\` was not sent, because \`${failed}\``),
      cause: { code: 'P2025' },
    });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('is noticed where an extension makes another result of it', async () => {
    const { id, key } = await shop.product(10);
    const extended = unfenced.$extends({
      query: {
        $allModels: {
          async $allOperations({ args, query }) {
            const result = (await query(args)) as object | undefined;
            return { ...result, seen: true };
          },
        },
      },
    });
    const held = extended.$withLock(key, (tx) => bothSettled(tx as unknown as Tx, id));
    await expect(held).rejects.toMatchObject({ reason: 'skipped-operation' });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test("is not told in the place of the function's own error, nor of a stale token", async () => {
    const { id, key } = await shop.product(10);
    const throwing = async (tx: Tx) => {
      await bothSettled(tx, id);
      throw new Error('sold out');
    };
    await expect(unfenced.$withLock(key, throwing)).rejects.toThrow('sold out');
    await shop.admin.query('UPDATE "Stock" SET fence = 9000000000000000000 WHERE id = $1', [id]);
    const work = (tx: Tx) => Promise.allSettled([tx.stock.update(add(id)), tx.stock.count()]);
    await expect(prisma.$withLock(key, work)).rejects.toMatchObject({ code: 'STALE_TOKEN' });
  });

  const SENT: Record<string, (tx: Tx, id: number) => unknown> = {
    'the failed one is the last of the batch': (tx, id) =>
      Promise.allSettled([tx.stock.update(add(id)), tx.stock.update(add(NONE))]),
    'the failed one is a read of a batch of its own kind': async (tx, id) => {
      const read = (of: number) => tx.stock.findUniqueOrThrow({ where: { id: of } });
      const [, row] = await Promise.allSettled([read(NONE), read(id)]);
      expect(row).toMatchObject({ status: 'fulfilled', value: { id } });
      await tx.stock.update(add(id));
    },
  };

  test.each(Object.entries(SENT))('is not seen where %s', async (_, work) => {
    const { id, key } = await shop.product(10);
    await unfenced.$withLock(key, (tx) => work(tx, id));
    expect((await shop.row(id))?.quantity).toBe(11);
  });
});
