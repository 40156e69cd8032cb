import { expect, test } from 'vitest';
import { InsideTransactionError, type LockTx } from '../../../src/index.js';
import type { Prisma } from '../../generated/prisma/client.js';
import { describeOfEachKind, ofKind } from '../../support/client-kinds.js';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';

describeWithShop('misuse is noticed', () => {
  const shop = new Shop();
  const { prisma, plain } = shop.client();
  const set = (id: number) => ({ where: { id }, data: { quantity: 0 } });

  const OUTSIDE: Record<string, (id: number) => Promise<unknown>> = {
    update: (id) => prisma.stock.update(set(id)),
    $executeRaw: (id) => prisma.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id}`,
    '$queryRaw that writes': (id) => prisma.$queryRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id} RETURNING id`,
    'a transaction of its own': (id) => prisma.$transaction((other) => other.stock.update(set(id))),
    'a batch': (id) => prisma.$transaction([prisma.stock.update(set(id))]),
    'a batch with raw SQL and reads': (id) =>
      prisma.$transaction([
        prisma.stock.findMany(),
        prisma.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id}`,
        prisma.stock.count(),
      ]),
    'a transaction of its own, behind a read': (id) =>
      prisma.$transaction((other) => Promise.all([other.stock.count(), other.stock.update(set(id))])),
    'another client of the package': (id) => shop.client().prisma.stock.update(set(id)),
  };

  test.each(Object.entries(OUTSIDE))(
    'a write on another client than `tx` inside the function: %s',
    async (_, write) => {
      const { id, key } = await shop.product(10);
      const error = await prisma.$withLock(key, () => write(id)).catch((error: unknown) => error);
      expect(error).toBeInstanceOf(InsideTransactionError);
      expect(error).toMatchObject({ code: 'INSIDE_TRANSACTION', key });
      expect((error as Error).message).toContain(
        `was called on a client (such as \`prisma\`) inside the function of the lock ${JSON.stringify(key)}, and was not sent.`,
      );
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  // Prisma sends the operations of one tick together, in the async context of the first.
  test.each(['fenced', 'without a condition'])('a write beside one on `tx`, in the same tick: %s', async (which) => {
    const { prisma: client } = which === 'fenced' ? { prisma } : shop.client({ models: [] });
    const { id, key } = await shop.product(10);
    const order = { buyer: key, quantity: 1, stockId: id };
    const OUTSIDE_BESIDE: Array<(tx: LockTx<ShopClient>) => Promise<unknown>> = [
      () => client.$transaction([client.order.create({ data: order })]),
      () => client.$transaction((other) => other.order.create({ data: order })),
      (tx) => client.$transaction((other) => Promise.all([tx.order.count(), other.order.create({ data: order })])),
      () => client.order.create({ data: order }),
    ];
    for (const write of OUTSIDE_BESIDE) {
      const call = client.$withLock(key, async (tx) => {
        const [, refused] = await Promise.allSettled([tx.stock.update(set(id)), write(tx), tx.stock.findFirst()]);
        if (refused.status === 'rejected') throw refused.reason;
      });
      await expect(call).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION', key });
    }
    expect((await shop.row(id))?.quantity).toBe(10);
    expect(await plain.order.count({ where: { buyer: key } })).toBe(0);
  });

  const IN_ARRAYS: Record<string, (tx: LockTx<ShopClient>, id: number) => Array<Prisma.PrismaPromise<unknown>>> = {
    writes: (tx, id) => [tx.stock.update(set(id)), tx.order.create({ data: { buyer: 'x', quantity: 1, stockId: id } })],
    'a write among those of the client': (tx, id) => [plain.stock.count(), tx.stock.update(set(id))],
  };

  test.each(Object.entries(IN_ARRAYS))(
    'an operation of `tx` that is given to an array of `$transaction`: %s',
    async (_, operations) => {
      const { id, key } = await shop.product(10);
      for (const client of [prisma, shop.client({ models: [] }).prisma]) {
        const work = (tx: LockTx<ShopClient>, by: Pick<ShopClient, '$transaction'>) =>
          by.$transaction(operations(tx, id) as Prisma.PrismaPromise<unknown>[]);
        for (const by of [client, plain] as Array<Pick<ShopClient, '$transaction'>>) {
          await expect(client.$withLock(key, (tx) => work(tx, by))).rejects.toMatchObject({
            code: 'INSIDE_TRANSACTION',
            message: expect.stringContaining('and given to `$transaction([…])`'),
          });
          // Nor does it commit without them.
          const swallowed = client.$withLock(key, (tx) => work(tx, by).catch(() => {}));
          await expect(swallowed).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'not-awaited' });
        }
      }
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  /** As it is sent, so each of these would write. */
  const RAW_WRITES = [
    '/* c */ UPDATE "Stock" SET quantity = 0 WHERE id = $1 RETURNING id',
    'EXPLAIN (COSTS off, ANALYZE) UPDATE "Stock" SET quantity = 0 WHERE id = $1',
    'WITH x AS (UPDATE "Stock" SET quantity = 0 WHERE id = $1 RETURNING id) SELECT id FROM x',
    'WITH x AS MATERIALIZED ( /* c */ DELETE FROM "Stock" WHERE id = $1 RETURNING id) SELECT id FROM x',
  ];

  test.each(RAW_WRITES)('raw SQL on `prisma` that says so: %s', async (sql) => {
    const { id, key } = await shop.product(10);
    const error = await prisma.$withLock(key, () => prisma.$queryRawUnsafe(sql, id)).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'INSIDE_TRANSACTION', key });
    await prisma.$queryRawUnsafe(sql, id);
    expect((await shop.row(id))?.quantity).not.toBe(10);
  });

  test.each([
    "SELECT '/* c */ UPDATE' AS said WHERE $1 > 0",
    '/* UPDATE */ SELECT id -- ; DELETE FROM "Stock"\n FROM "Stock" WHERE id = $1',
    'EXPLAIN UPDATE "Stock" SET quantity = 0 WHERE id = $1',
    'WITH x AS (SELECT id FROM "Stock" WHERE id = $1 FOR UPDATE) SELECT id FROM x',
  ])('raw SQL on `prisma` that only reads is not refused: %s', async (sql) => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, () => prisma.$queryRawUnsafe(sql, id));
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('reads on `prisma`, and writes through one without the extension, are the caller’s business', async () => {
    const { id, key } = await shop.product(10);
    const read = await prisma.$withLock(key, async () => {
      await plain.stock.update({ where: { id }, data: { quantity: 9 } });
      await prisma.$queryRaw`SELECT 1`;
      return prisma.stock.findUniqueOrThrow({ where: { id } });
    });
    expect(read.quantity).toBe(9);
  });
});

describeOfEachKind('a write that is refused dooms its call, whatever becomes of its rejection', (kind) => {
  const shop = new Shop();
  const prisma = ofKind(kind, shop.client().prisma);
  type Tx = LockTx<ShopClient>;

  const REFUSED: Record<string, (tx: Tx, id: number) => Promise<unknown>> = {
    'a nested write': (tx, id) =>
      tx.stock.update({ where: { id }, data: { orders: { create: { buyer: 'x', quantity: 1 } } } }),
    'a nested write of a model that is not fenced': (tx, id) =>
      tx.order.create({ data: { buyer: 'x', quantity: 1, stock: { connect: { id } } } }),
    'a limit': (tx, id) => tx.stock.updateMany({ where: { id }, data: { quantity: 0 }, limit: 1 }),
    'a fence in the data': (tx, id) => tx.stock.update({ where: { id }, data: { fence: 1n } }),
    'SQL that ends the transaction': (tx) => tx.$executeRaw`COMMIT`,
  };

  const SWALLOWED: Record<string, (refused: () => Promise<unknown>, valid: () => Promise<unknown>) => unknown> = {
    catch: (refused) => refused().catch(() => {}),
    'Promise.all, as its first part': (refused, valid) => Promise.all([refused(), valid()]).catch(() => {}),
    'Promise.all, as its last part': (refused, valid) => Promise.all([valid(), refused()]).catch(() => {}),
  };

  test.each(Object.entries(REFUSED))('%s', async (_, refused) => {
    for (const [how, swallow] of Object.entries(SWALLOWED)) {
      const { id, key } = await shop.product(10);
      const work = async (tx: Tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 5 } });
        await swallow(
          () => refused(tx, id),
          () => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }),
        );
      };
      for (const call of [work, () => prisma.$withLock(key, work)]) {
        await expect(prisma.$withLock(key, call), how).rejects.toMatchObject({
          code: expect.stringMatching(/^(INVALID_OPTION|INSIDE_TRANSACTION|TRANSACTION_ABORTED)$/),
        });
        expect((await shop.row(id))?.quantity, how).toBe(10);
      }
    }
  });

  test('also where an extension of the client has swallowed it', async () => {
    const { id, key } = await shop.product(10);
    const forgiving = prisma.$extends({
      query: { stock: { update: ({ args, query }) => query(args).catch(() => null as never) } },
    });
    const data = { orders: { create: { buyer: 'x', quantity: 1 } } };
    const held = forgiving.$withLock(key, (tx) => tx.stock.update({ where: { id }, data }));
    await expect(held).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'Stock.orders' });
  });
});
