import { expect, test } from 'vitest';
import type { FencedLockError, LockTx } from '../../src/index.js';
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
    'order.create': (tx, id) => void tx.order.create({ data: { buyer: 'x', quantity: 1, stockId: id } }).stock,
    'stock.delete': (tx, id) => ({ sold: (tx.stock.delete({ where: { id } }) as unknown as { id: number }).id }),
    'order.create.stock': (tx, id) => void tx.order.create({ data: { buyer: 'x', quantity: 1, stockId: id } }).stock(),
    $executeRaw: (tx, id) => void tx.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id}`,
    $queryRawUnsafe: (tx, id) => void tx.$queryRawUnsafe('SELECT 1 FROM "Stock" WHERE id = $1 FOR UPDATE', id),
  };

  test.each(Object.entries(FORGOTTEN))('rolls back, and is named: %s', async (name, forget) => {
    const { id, key } = await shop.product(10);
    const message = expect.stringContaining(`\`${name}\``);
    const aborted = { code: 'TRANSACTION_ABORTED', reason: 'not-awaited', key, message };
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

  test('and was called on the client, is not sent, and nobody is told: Prisma sends what is awaited', async () => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, async (tx) => {
      void prisma.stock.update(set(id, 1));
      await tx.stock.update(set(id, 5));
    });
    expect((await shop.row(id))?.quantity).toBe(5);
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

describeWithShop('a helper that is not awaited', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  /** Nested writes of a fenced model without a guard are refused. */
  const { prisma: unfenced } = shop.client({ models: [] });
  const set = (id: number, quantity: number) => ({ where: { id }, data: { quantity } });
  const add = (id: number) => ({ where: { id }, data: { quantity: { increment: 1 } } });

  /** Its errors are its own. */
  const forget = (helper: Promise<unknown>) => void helper.catch(() => {});
  const transfer = async (tx: Tx, id: number) => {
    await tx.stock.update(set(id, 1));
    await tx.stock.update(set(id, 2));
  };

  const tick = () => new Promise<void>((resolve) => process.nextTick(resolve));

  const FORGOTTEN: Record<string, readonly [string, (tx: Tx, id: number) => unknown]> = {
    'begins with a write': ['stock.update', (tx, id) => forget(transfer(tx, id))],
    'begins with a read': [
      'stock.findUnique',
      (tx, id) =>
        forget(tx.stock.findUnique({ where: { id } }).then(async (row) => tx.stock.update(set(id, Number(row?.id))))),
    ],
    'begins with raw SQL': ['$queryRaw', (tx, id) => forget(tx.$queryRaw`SELECT 1`.then(() => transfer(tx, id)))],
    'is called by forEach': ['stock.update', (tx, id) => [id, id].forEach(async (each) => forget(transfer(tx, each)))],
    'has begun its second step': [
      'stock.update',
      async (tx, id) => {
        const helper = transfer(tx, id);
        forget(helper);
        await tx.stock.count();
      },
    ],
    'writes behind a tick of Node': [
      'stock.update',
      async (tx, id) => {
        await tx.stock.count();
        forget(tick().then(() => tx.stock.update(set(id, 1)).then(() => {})));
      },
    ],
    'reads a relation of its write': [
      'order.create.stock',
      (tx, id) =>
        forget(
          tx.order
            .create({ data: { buyer: 'x', quantity: 1, stockId: id } })
            .stock()
            .then(() => {}),
        ),
    ],
    'has lost a race': ['stock.update', (tx, id) => Promise.race([tx.stock.update(set(id, 1)), 'first'])],
    'was left by a caught Promise.all': [
      'stock.update',
      (tx, id) => Promise.all([tx.stock.update(set(id, 1)), Promise.reject(new Error('no'))]).catch(() => {}),
    ],
  };

  test.each(Object.entries(FORGOTTEN))(
    'rolls back, and its statement is named: one that %s',
    async (_, [name, work]) => {
      const { id, key } = await shop.product(10);
      const before = async (tx: Tx) => {
        await tx.stock.update(add(id));
        await work(tx, id);
      };
      const aborted = {
        code: 'TRANSACTION_ABORTED',
        reason: 'not-awaited',
        key,
        message: expect.stringMatching(
          new RegExp(`\\W${name.replace('$', '\\$')}\\W.*in flight.*await-every-operation`, 's'),
        ),
      };
      await expect(prisma.$withLock(key, before)).rejects.toMatchObject(aborted);
      await expect(prisma.$withLock(key, () => prisma.$withLock(key, before))).rejects.toMatchObject(aborted);
      await expect(prisma.$oncePer(key, 60_000, before)).rejects.toMatchObject(aborted);
      const handle = await prisma.$lock(key);
      await expect(handle.$transaction(before)).rejects.toMatchObject(aborted);
      await handle.release();
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  test("does not replace the function's own error", async () => {
    const { id, key } = await shop.product(10);
    const work = (tx: Tx) => {
      forget(transfer(tx, id));
      throw new Error('sold out');
    };
    await expect(prisma.$withLock(key, work)).rejects.toThrow('sold out');
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('hears of its end by our error, not by that of Prisma', async () => {
    const { id, key } = await shop.product(10);
    let late: Promise<unknown> = Promise.resolve();
    const work = async (tx: Tx) => {
      const made = tx.stock.findMany();
      late = expect(transfer(tx, id)).rejects.toMatchObject({
        code: 'CLOSED',
        key,
        message: expect.stringMatching(/Await every operation, and every helper/),
      });
      return { made };
    };
    await expect(prisma.$withLock(key, work)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    await late;
    const { made } = await prisma.$withLock(key, (tx) => ({ made: tx.stock.findMany() }));
    await expect(made).rejects.toMatchObject({
      code: 'CLOSED',
      key,
      message: expect.stringMatching(
        /`stock\.findMany` was not sent\. Most likely an `await` is missing in its function\./,
      ),
    });
  });

  test('and the call that it was in tell the same of one operation, with the same page of the installed package', async () => {
    const { id, key } = await shop.product(10);
    let late: Promise<unknown> = Promise.resolve();
    const helper = async (tx: Tx) => await tx.stock.findUniqueOrThrow({ where: { id } });
    const call = prisma.$withLock(key, (tx) => {
      late = helper(tx).catch((error: unknown) => error);
    });
    const errors = [await call.catch((error: unknown) => error), await late] as FencedLockError[];
    expect(errors.map(({ code }) => code)).toEqual(['TRANSACTION_ABORTED', 'CLOSED']);
    for (const { message } of errors) {
      expect(message).toMatch(/`stock\.findUniqueOrThrow`.* in flight/);
      expect(message).not.toContain('was not sent');
      const pages = [...message.matchAll(/\S*docs\/[\w./#-]+/g)].map(([page]) => page.replace('(', ''));
      expect(pages).toEqual(['node_modules/prisma-extension-fenced-lock/docs/locks.md#await-every-operation']);
    }
  });

  const HEALTHY: Record<string, (tx: Tx, id: number, key: string) => unknown> = {
    'its operation is returned': (tx, id) => tx.stock.update(add(id)),
    'all parts of Promise.all have settled': (tx, id) =>
      Promise.all([tx.stock.update(add(id)), tx.stock.count(), tx.stock.findMany()]),
    'Promise.allSettled has a part that fails': (tx, id) =>
      Promise.allSettled([
        tx.stock.update(add(id)),
        tx.stock.update(add(-1)),
        tx.stock.findUniqueOrThrow({ where: { id: -1 } }),
      ]),
    'the loser of a race is awaited afterwards': async (tx, id) => {
      const update = tx.stock.update(add(id)).then(() => 'update');
      await Promise.race([update, tx.stock.count()]);
      await update;
    },
    'reads are sent in one batch': async (tx, id) => {
      await Promise.all([1, 2, 3].map((each) => tx.stock.findUnique({ where: { id: each } })));
      await tx.stock.update(add(id));
    },
    'a write is nested, and its relations are read back': (tx, id) =>
      tx.order.create({
        data: { buyer: 'one', quantity: 1, stock: { connect: { id } } },
        include: { stock: { include: { orders: true } } },
      }),
    'an inner call joins': async (tx, id, key) => {
      await unfenced.$withLock(key, (inner) => inner.stock.update(add(id)));
      await tx.stock.count();
    },
    'something else is not awaited': async (tx, id) => {
      void new Promise(() => {});
      await tx.stock.update(add(id));
    },
    'it works by raw SQL': (tx, id) => tx.$executeRaw`UPDATE "Stock" SET quantity = quantity + 1 WHERE id = ${id}`,
  };

  test.each(Object.entries(HEALTHY))('is not seen where %s', async (_, work) => {
    const { id, key } = await shop.product(10);
    await unfenced.$withLock(key, (tx) => work(tx, id, key));
    await unfenced.$oncePer(key, 60_000, (tx) => work(tx, id, key));
  });
});
