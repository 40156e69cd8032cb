import { expect, test, vi } from 'vitest';
import { ClosedError, type LockTx } from '../../src/index.js';
import { NOT_ON_TX } from '../../src/prisma/tx.js';
import { Prisma } from '../generated/prisma/client.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('the client that the function of a lock is given', () => {
  const shop = new Shop();

  test.each(NOT_ON_TX)('has no %s, which would leave the transaction', async (name) => {
    await shop.client().prisma.$withLock('tx', (tx) => {
      const got = (tx as unknown as Record<string, unknown>)[name];
      expect(name in tx).toBe(false);
      // Extensions find out by it that they are inside a transaction.
      if (name === '$extends') expect(got).toBeUndefined();
      else expect(got).toThrow(expect.objectContaining({ code: 'INSIDE_TRANSACTION' }));
    });
  });

  test('may be what the function returns, as with a plain transaction; it is closed then', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client();
    type Tx = LockTx<ShopClient>;
    const ways: ReadonlyArray<() => Promise<Tx>> = [
      () => prisma.$withLock(key, (tx) => tx),
      () => prisma.$withLock(key, async (tx) => tx),
      async () => ((await prisma.$tryWithLock(key, async (tx) => tx)) as { value: Tx }).value,
      async () => ((await prisma.$oncePer(key, 60_000, async (tx) => tx)) as { value: Tx }).value,
      async () => {
        await using handle = await prisma.$lock(key);
        return await handle.$transaction(async (tx) => tx);
      },
    ];
    for (const way of ways) {
      const tx = await way();
      await expect(tx.stock.count()).rejects.toBeInstanceOf(ClosedError);
      await expect(tx.$queryRaw`SELECT 1`).rejects.toBeInstanceOf(ClosedError);
      // JavaScript reads properties by itself.
      expect(await tx).toBe(tx);
      expect(`${tx as unknown as string}`).toBe('[object PrismaClient]');
    }
  });

  test('lets an operation be watched by the tools of tests, and given back', async () => {
    const { id, key } = await shop.product(10);
    await shop.client().prisma.$withLock(key, async (tx) => {
      const spy = vi.spyOn(tx.stock, 'findUnique');
      expect(await tx.stock.findUnique({ where: { id } })).toMatchObject({ id });
      expect(spy).toHaveBeenCalledOnce();
      spy.mockRestore();
      expect(await tx.stock.findUnique({ where: { id } })).toMatchObject({ id });
      expect(spy).not.toHaveBeenCalled();
    });
  });

  test('has models, operations and what extensions have added, own and inherited', async () => {
    const { id, key } = await shop.product(10);
    const extended = shop.client().prisma.$extends({
      name: 'shop',
      client: { $shop: 'here' },
      model: {
        $allModels: {
          async left(id: number): Promise<number> {
            const model = Prisma.getExtensionContext(this) as unknown as {
              findUniqueOrThrow(args: object): Promise<{ quantity: number }>;
            };
            return (await model.findUniqueOrThrow({ where: { id } })).quantity;
          },
        },
      },
      result: { stock: { label: { needs: { id: true }, compute: ({ id }) => `#${id}` } } },
    });
    await extended.$withLock(key, async (tx) => {
      expect(tx.$shop).toBe('here');
      expect('$shop' in tx).toBe(true);
      expect(['stock', 'order'].every((model) => model in tx)).toBe(true);
      await tx.stock.update({ where: { id }, data: { quantity: 7 } });
      // By the transaction, not beside it.
      expect(await tx.stock.left(id)).toBe(7);
      expect((await tx.stock.findUniqueOrThrow({ where: { id } })).label).toBe(`#${id}`);
      expect('$extends' in tx).toBe(false);
      expect((tx as unknown as { $extends: unknown }).$extends).toBeUndefined();
      expect('$transaction' in tx).toBe(false);
    });
    expect((await shop.row(id))?.quantity).toBe(7);
  });
});
