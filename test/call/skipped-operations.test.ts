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

  const SKIPPED: Record<string, readonly [string, string, (tx: Tx, id: number) => unknown]> = {
    'in Promise.allSettled': [
      'stock.update',
      'stock.update',
      (tx, id) => Promise.allSettled([tx.stock.update(add(NONE)), tx.stock.update(add(id))]),
    ],
    'beside one whose error is caught': [
      'order.delete',
      'stock.updateMany',
      (tx, id) => Promise.all([tx.order.delete({ where: { id: NONE } }).catch(() => {}), tx.stock.updateMany(add(id))]),
    ],
    'as raw SQL': [
      'order.delete',
      '$executeRaw',
      (tx, id) =>
        Promise.allSettled([
          tx.order.delete({ where: { id: NONE } }),
          tx.$executeRaw`UPDATE "Stock" SET quantity = quantity + 1 WHERE id = ${id}`,
        ]),
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
    'and the function goes on to another one': [
      'stock.update',
      'stock.update',
      async (tx, id) => {
        await tx.stock.update(add(id));
        await Promise.allSettled([tx.stock.update(add(NONE)), tx.stock.update(add(id)), tx.stock.update(add(id))]);
        await tx.stock.update(add(id));
      },
    ],
  };

  test.each(Object.entries(SKIPPED))('rolls back, and both are named: %s', async (_, [failed, skipped, work]) => {
    const { id, key } = await shop.product(10);
    const aborted = {
      code: 'TRANSACTION_ABORTED',
      reason: 'skipped-operation',
      key,
      message: expect.stringContaining(`\`${skipped}\` was not sent, because \`${failed}\``),
      cause: { code: 'P2025' },
    };
    const run = (tx: Tx) => work(tx, id);
    await expect(unfenced.$withLock(key, run)).rejects.toMatchObject(aborted);
    await expect(unfenced.$withLock(key, () => unfenced.$withLock(key, run))).rejects.toMatchObject(aborted);
    await expect(unfenced.$oncePer(key, 60_000, run)).rejects.toMatchObject(aborted);
    const handle = await unfenced.$lock(key);
    await expect(handle.$transaction(run)).rejects.toMatchObject(aborted);
    await handle.release();
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  type Make = (tx: Tx, id: number) => Promise<unknown>;
  const wrong = { nothing: 3 } as object;
  const INVALID: Record<string, readonly [string, Make]> = {
    'a write': ['order.create', (tx) => tx.order.create({ data: wrong as never })],
    'a write of the same kind': [
      'stock.updateMany',
      (tx, id) => tx.stock.updateMany({ where: { id }, data: wrong as never }),
    ],
    'a write that returns rows': [
      'order.createManyAndReturn',
      (tx) => tx.order.createManyAndReturn({ data: [wrong as never] }),
    ],
    'a read': ['order.findMany', (tx) => tx.order.findMany({ where: wrong as never })],
  };

  test.each(Object.entries(INVALID))(
    'rolls back where Prisma refuses the whole batch for the arguments of one: %s',
    async (_, [failed, invalid]) => {
      const { id, key } = await shop.product(10);
      const VALID: Record<string, Make> = {
        'stock.updateMany': (tx) => tx.stock.updateMany(add(id)),
        $queryRaw: (tx) => tx.$queryRaw`UPDATE "Stock" SET quantity = 11 WHERE id = ${id} RETURNING id`,
      };
      for (const [name, valid] of Object.entries(VALID)) {
        for (const parts of [
          [invalid, valid],
          [valid, invalid],
        ]) {
          const caught: unknown[] = [];
          const run = async (tx: Tx) => {
            await Promise.all(parts.map((part) => part(tx, id))).catch((error: unknown) => caught.push(error));
          };
          await expect(unfenced.$withLock(key, run)).rejects.toMatchObject({
            code: 'TRANSACTION_ABORTED',
            reason: 'skipped-operation',
            message: expect.stringContaining(`\`${name}\` was not sent, because \`${failed}\``),
          });
          expect(caught).toMatchObject([{ name: 'PrismaClientValidationError' }]);
        }
        // Without a guard, each has its own result.
        const run = (tx: Tx) => Promise.all([invalid(tx, id), valid(tx, id)]).catch(() => {});
        await expect(prisma.$withLock(key, run)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
      }
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  test('is not seen where the arguments of a single one, or of one beside reads, are wrong', async () => {
    const { id, key } = await shop.product(10);
    await unfenced.$withLock(key, async (tx) => {
      await tx.stock.update(add(id));
      await tx.order.create({ data: wrong as never }).catch(() => {});
      await Promise.all([tx.order.count(), tx.order.create({ data: wrong as never })]).catch(() => {});
      await Promise.all([tx.order.count(), tx.order.findMany({ where: wrong as never })]).catch(() => {});
    });
    expect((await shop.row(id))?.quantity).toBe(11);
  });

  const order = { buyer: 'x', quantity: 1, stockId: 1 };
  const id = NONE - 1;
  const OPERATIONS: Record<string, (orders: Tx['order']) => PromiseLike<unknown>> = {
    findFirst: (orders) => orders.findFirst(),
    findFirstOrThrow: (orders) => orders.findFirstOrThrow(),
    findMany: (orders) => orders.findMany(),
    count: (orders) => orders.count(),
    aggregate: (orders) => orders.aggregate({ _count: true }),
    groupBy: (orders) => orders.groupBy({ by: ['buyer'] }),
    create: (orders) => orders.create({ data: order }),
    createMany: (orders) => orders.createMany({ data: [order] }),
    createManyAndReturn: (orders) => orders.createManyAndReturn({ data: [order] }),
    update: (orders) => orders.update({ where: { id }, data: { quantity: 2 } }),
    updateMany: (orders) => orders.updateMany({ data: { quantity: 2 } }),
    updateManyAndReturn: (orders) => orders.updateManyAndReturn({ where: { id }, data: { quantity: 2 } }),
    upsert: (orders) => orders.upsert({ where: { id }, update: { quantity: 2 }, create: order }),
    delete: (orders) => orders.delete({ where: { id } }),
    deleteMany: (orders) => orders.deleteMany({ where: { id } }),
  };

  test.each(Object.entries(OPERATIONS))('may be any: %s', async (name, operation) => {
    const work = async ({ order: orders }: Tx) => {
      const [, second] = await Promise.allSettled([orders.delete({ where: { id: NONE } }), operation(orders)]);
      expect(second).toMatchObject({ status: 'rejected', reason: { reason: 'skipped-operation' } });
    };
    await expect(unfenced.$withLock(`order:${name}`, work)).rejects.toMatchObject({
      reason: 'skipped-operation',
      message: expect.stringContaining(`\`order.${name === 'count' ? 'aggregate' : name}\` was not sent`),
    });
  });

  test('rolls back in a Promise.all whose error is caught, whichever of its parts has settled at the return', async () => {
    const { id, key } = await shop.product(10);
    const work = (tx: Tx) => Promise.all([tx.stock.update(add(NONE)), tx.stock.update(add(id))]).catch(() => {});
    for (const client of [prisma, unfenced]) {
      await expect(client.$withLock(key, work)).rejects.toMatchObject({
        code: 'TRANSACTION_ABORTED',
        reason: expect.stringMatching(/^(skipped-operation|not-awaited)$/),
      });
    }
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
    const work = (tx: Tx) => Promise.allSettled([tx.stock.update(add(NONE)), tx.stock.update(add(id))]);
    await expect(extended.$withLock(key, (tx) => work(tx as unknown as Tx))).rejects.toMatchObject({
      reason: 'skipped-operation',
    });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('stays as it is in a plain transaction, which is no business of a lock', async () => {
    const { id } = await shop.product(10);
    const settled = await unfenced.$transaction((tx) =>
      Promise.allSettled([tx.stock.update(add(NONE)), tx.stock.update(add(id))]),
    );
    expect(settled[1]).toEqual({ status: 'fulfilled', value: undefined });
  });

  test('is found beside one whose error comes later, because an extension holds it back', async () => {
    const { id, key } = await shop.product(10);
    let release = () => {};
    const settled = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = unfenced.$extends({
      query: {
        order: {
          delete: ({ args, query }) =>
            query(args).catch(async (error: unknown) => {
              await settled;
              throw error;
            }),
        },
      },
    });
    const work = async (tx: Tx) => {
      const missing = tx.order.delete({ where: { id: NONE } }).catch(() => {});
      await tx.stock.update(add(id)).finally(release);
      await missing;
    };
    await expect(slow.$withLock(key, (tx) => work(tx as unknown as Tx))).rejects.toMatchObject({
      reason: 'skipped-operation',
    });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test("is not told in the place of the function's own error", async () => {
    const { id, key } = await shop.product(10);
    const work = async (tx: Tx) => {
      await Promise.allSettled([tx.stock.update(add(NONE)), tx.stock.update(add(id))]);
      throw new Error('sold out');
    };
    await expect(unfenced.$withLock(key, work)).rejects.toThrow('sold out');
  });

  test('is not told in the place of a stale token', async () => {
    const { id, key } = await shop.product(10);
    await shop.admin.query('UPDATE "Stock" SET fence = 9000000000000000000 WHERE id = $1', [id]);
    const work = (tx: Tx) => Promise.allSettled([tx.stock.update(add(id)), tx.stock.count()]);
    await expect(prisma.$withLock(key, work)).rejects.toMatchObject({ code: 'STALE_TOKEN' });
  });

  const SENT: Record<string, (tx: Tx, id: number) => unknown> = {
    'the failed one is the last of the batch': (tx, id) =>
      Promise.allSettled([tx.stock.update(add(id)), tx.stock.update(add(NONE))]),
    'the failed one was awaited before': async (tx, id) => {
      await tx.stock.update(add(NONE)).catch(() => {});
      await tx.stock.update(add(id));
    },
    'the failed one is a read of a batch of its own kind': async (tx, id) => {
      const read = (of: number) => tx.stock.findUniqueOrThrow({ where: { id: of } });
      const [, row] = await Promise.allSettled([read(NONE), read(id)]);
      expect(row).toMatchObject({ status: 'fulfilled', value: { id } });
      await tx.stock.update(add(id));
    },
    'nothing has failed': (tx, id) => Promise.all([tx.stock.update(add(id)), tx.stock.count()]),
  };

  test.each(Object.entries(SENT))('is not seen where %s', async (_, work) => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, (tx) => work(tx, id));
    expect((await shop.row(id))?.quantity).toBe(11);
  });

  test('is not seen where an extension returns nothing', async () => {
    const { id, key } = await shop.product(10);
    const silent = prisma.$extends({
      query: {
        stock: {
          async update({ args, query }) {
            await query(args);
            return undefined as never;
          },
        },
      },
    });
    await silent.$withLock(key, async (tx) => {
      await Promise.all([tx.stock.update(add(id)), tx.stock.update(add(id))]);
      await tx.stock.delete({ where: { id: NONE } }).catch(() => {});
      await tx.stock.update(add(id));
    });
    expect((await shop.row(id))?.quantity).toBe(13);
  });
});
