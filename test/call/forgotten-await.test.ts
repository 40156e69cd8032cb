import { expect, test } from 'vitest';
import type { FencedLockError, LockTx } from '../../src/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

type Tx = LockTx<ShopClient>;
type Works = Record<string, (tx: Tx, id: number) => unknown>;

const set = (id: number, quantity = 0) => ({ where: { id }, data: { quantity } });
const order = (id: number) => ({ data: { buyer: 'x', quantity: 1, stockId: id } });

/** Every way to run a function under a lock. */
const CALLS: Record<string, (prisma: ShopClient, key: string, work: (tx: Tx) => unknown) => Promise<unknown>> = {
  $withLock: (prisma, key, work) => prisma.$withLock(key, work),
  'a call that joins': (prisma, key, work) => prisma.$withLock(key, () => prisma.$withLock(key, work)),
  $oncePer: (prisma, key, work) => prisma.$oncePer(key, 60_000, work),
  'a handle': async (prisma, key, work) => {
    await using handle = await prisma.$lock(key);
    return await handle.$transaction(work);
  },
};

describeWithShop('an operation that the function did not await', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const NEVER_SENT: Works = {
    'stock.update': (tx, id) => void tx.stock.update(set(id)),
    'order.create.stock': (tx, id) => void tx.order.create(order(id)).stock(),
    $executeRaw: (tx, id) => void tx.$executeRaw`UPDATE "Stock" SET quantity = 0 WHERE id = ${id}`,
  };

  test.each(Object.entries(NEVER_SENT))('was not sent: rolls back, and is named: %s', async (name, forget) => {
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update(set(id, 5));
      forget(tx, id);
    });
    const message = expect.stringContaining(`\`${name}\``);
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'not-awaited', key, message });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  /** Its errors are its own. */
  const forget = (helper: Promise<unknown>) => void helper.catch(() => {});
  const transfer = async (tx: Tx, id: number) => {
    await tx.stock.update(set(id, 1));
    await tx.stock.update(set(id, 2));
  };
  const tick = () => new Promise<void>((resolve) => process.nextTick(resolve));

  const IN_FLIGHT: Record<string, readonly [string, (tx: Tx, id: number) => unknown]> = {
    'a helper that writes': ['stock.update', (tx, id) => forget(transfer(tx, id))],
    'a helper that begins with raw SQL': ['$queryRaw', (tx, id) => forget(tx.$queryRaw`SELECT 1`.then(() => id))],
    'a helper that writes behind a tick of Node': [
      'stock.update',
      async (tx, id) => {
        await tx.stock.count();
        forget(tick().then(() => tx.stock.update(set(id, 1)).then(() => {})));
      },
    ],
    'the loser of a race': ['stock.update', (tx, id) => Promise.race([tx.stock.update(set(id, 1)), 'first'])],
    'what a caught Promise.all has left': [
      'stock.update',
      (tx, id) => Promise.all([tx.stock.update(set(id, 1)), Promise.reject(new Error('no'))]).catch(() => {}),
    ],
  };

  test.each(Object.entries(IN_FLIGHT))('is in flight: rolls back, and is named: %s', async (_, [name, work]) => {
    const { id, key } = await shop.product(10);
    const named = new RegExp(`\\W${name.replace('$', '\\$')}\\W.*in flight.*await-every-operation`, 's');
    const aborted = { code: 'TRANSACTION_ABORTED', reason: 'not-awaited', message: expect.stringMatching(named) };
    await expect(prisma.$withLock(key, (tx) => work(tx, id))).rejects.toMatchObject(aborted);
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test.each(Object.entries(CALLS))('rolls back whatever the call is: %s', async (_, call) => {
    const { id, key } = await shop.product(10);
    const aborted = { code: 'TRANSACTION_ABORTED', reason: 'not-awaited', key };
    for (const work of [(tx: Tx) => void tx.stock.update(set(id)), (tx: Tx) => forget(transfer(tx, id))]) {
      await expect(call(prisma, key, work)).rejects.toMatchObject(aborted);
    }
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test("is not told in the place of the function's own error", async () => {
    const { id, key } = await shop.product(10);
    const work = (tx: Tx) => {
      void tx.stock.update(set(id));
      forget(transfer(tx, id));
      throw new Error('sold out');
    };
    await expect(prisma.$withLock(key, work)).rejects.toThrow('sold out');
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('hears of the end by our error with the page of the installed package, and so does its call', async () => {
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
      expect(message).toContain('node_modules/prisma-extension-fenced-lock/docs/locks.md#await-every-operation');
    }
    const { made } = await prisma.$withLock(key, (tx) => ({ made: tx.stock.findMany() }));
    const message = expect.stringMatching(/`stock\.findMany` was not sent\. Most likely an `await` is missing/);
    await expect(made).rejects.toMatchObject({ code: 'CLOSED', key, message });
  });
});

describeWithShop('a function that awaits every operation', () => {
  const shop = new Shop();
  // Nested writes of a fenced model without a guard are refused.
  const { prisma } = shop.client({ models: [] });
  const later = <T>(operation: PromiseLike<T>): Promise<T> =>
    new Promise((...settle) => void operation.then(...settle));

  const HEALTHY: Works = {
    'returns it': (tx, id) => tx.stock.update(set(id)),
    'returns it in a Promise.allSettled, with a part that fails': (tx, id) =>
      Promise.allSettled([tx.stock.update(set(id)), tx.stock.update(set(-1))]),
    'hands it to a helper': (tx, id) => later(tx.stock.update(set(id))),
    'awaits the loser of a race afterwards': async (tx, id) => {
      const update = tx.stock.update(set(id)).then(() => 'update');
      await Promise.race([update, tx.stock.count()]);
      await update;
    },
    'goes on to a relation': async (tx, id) => {
      await tx.stock.update(set(id));
      expect(await tx.order.create(order(id)).stock()).toMatchObject({ id });
    },
    'drops a read': async (tx, id) => {
      void tx.stock.findMany();
      await tx.stock.update(set(id));
    },
  };

  test.each(Object.entries(HEALTHY))('commits where it %s', async (_, work) => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, (tx) => work(tx, id));
    expect((await shop.row(id))?.quantity).toBe(0);
  });
});
