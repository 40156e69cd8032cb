import { expect, test } from 'vitest';
import {
  ClosedError,
  InsideTransactionError,
  LockLostError,
  TransactionAbortedError,
  toFencedLockError,
} from '../../src/index.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

/** A transaction of a bystander that holds a product's row until it is told to let go. */
async function holdRow(shop: Shop, id: number): Promise<() => Promise<void>> {
  const bystander = await shop.admin.connect();
  await bystander.query('BEGIN');
  await bystander.query('SELECT 1 FROM "Stock" WHERE id = $1 FOR UPDATE', [id]);
  return async () => {
    await bystander.query('COMMIT');
    bystander.release();
  };
}

describeWithShop('what Prisma and pg would do by themselves', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  /** Nested writes of a fenced model without a guard are refused. */
  const { prisma: unfenced } = shop.client({ models: [] });

  async function ordersOf(buyer: string): Promise<number> {
    const { rowCount } = await shop.admin.query('SELECT 1 FROM "Order" WHERE buyer = $1', [buyer]);
    return rowCount ?? 0;
  }

  /** Two statements: the update of the row, which may have to wait, and then an order of its own. */
  const nestedWrite = (tx: Pick<ShopClient, 'stock'>, id: number, buyer: string) =>
    tx.stock.update({ where: { id }, data: { product: `by ${buyer}`, orders: { create: { buyer, quantity: 1 } } } });

  test('a swallowed SQL error does not make an aborted transaction look committed', async () => {
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      await tx.$queryRaw`SELECT 1 / 0`.catch(() => {});
      return 'sold';
    });
    const error = await held.catch((error: unknown) => error);
    expect(error).toBeInstanceOf(TransactionAbortedError);
    expect(error).toMatchObject({ reason: 'failed-statement', cause: { code: '22012' } });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('a failure that leaves the transaction whole does not keep it from committing', async () => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id: -1 }, data: { quantity: 0 } }).catch(() => {});
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test('after a timeout no statement of a running operation lands outside the transaction', async () => {
    const { id, key } = await shop.product(10);
    const letGo = await holdRow(shop, id);
    const held = unfenced.$withLock(key, (tx) => nestedWrite(tx, id, key), { timeout: 200 });
    await expect(held).rejects.toBeInstanceOf(TransactionAbortedError);
    await letGo();
    // The pool's next users would meet what was left on the connection.
    await prisma.$withLock(key, (tx) => tx.stock.count());
    expect(await ordersOf(key)).toBe(0);
  });

  test('a part of a failed Promise.all does not land outside the transaction', async () => {
    const { id, key } = await shop.product(10);
    const letGo = await holdRow(shop, id);
    const failed = gate();
    const held = unfenced.$withLock(key, async (tx) => {
      const waits = shop.blocked('UPDATE "public"."Stock"');
      await Promise.all([nestedWrite(tx, id, key), waits.then(() => Promise.reject(new Error('no sale')))]).finally(
        failed.open,
      );
    });
    const settled = held.catch((error: unknown) => error);
    await failed.opened;
    await letGo();
    expect(await settled).toMatchObject({ message: 'no sale' });
    await prisma.$withLock(key, (tx) => tx.stock.count());
    expect(await ordersOf(key)).toBe(0);
  });

  test('work may take longer than the time after which Prisma would end a transaction', async () => {
    const { id, key } = await shop.product(10);
    const { prisma: hasty } = shop.client({ transactionOptions: { timeout: 200 } });
    await hasty.$withLock(key, async (tx) => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test('an operation on tx after the end is refused and not sent', async () => {
    const { id, key } = await shop.product(10);
    const escaped = await prisma.$withLock(key, (tx) => ({ tx, late: tx.stock.findMany({ where: { id } }) }));
    await expect(escaped.late).rejects.toThrow(/ended|closed|committed transaction/i);
    const later = escaped.tx.stock.delete({ where: { id } });
    await expect(later).rejects.toMatchObject({ constructor: ClosedError, key });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('an operation that begins after the function has ended is refused, though another is still in flight', async () => {
    const { id, key } = await shop.product(10);
    const letGo = await holdRow(shop, id);
    const returning = gate();
    let late: Promise<unknown> = Promise.resolve();
    const held = prisma.$withLock(key, async (tx) => {
      void tx.stock.update({ where: { id }, data: { quantity: 9 } }).then(() => {});
      await shop.blocked('UPDATE "public"."Stock"');
      late = returning.opened.then(() => tx.order.create({ data: { stockId: id, buyer: key, quantity: 1 } }));
      setImmediate(returning.open);
    });
    const aborted = expect(held).rejects.toBeInstanceOf(TransactionAbortedError);
    await expect(async () => {
      await returning.opened;
      await late;
    }).rejects.toBeInstanceOf(ClosedError);
    await letGo();
    await aborted;
    expect(await ordersOf(key)).toBe(0);
  });

  test.each(['rollback', "PREPARE TRANSACTION 'x'"])(
    'raw SQL that would end the transaction is refused: %s',
    async (text) => {
      const { id, key } = await shop.product(10);
      const held = prisma.$withLock(key, async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        await tx.$executeRawUnsafe(text);
      });
      await expect(held).rejects.toBeInstanceOf(InsideTransactionError);
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  test('COPY … FROM STDIN is refused before it is sent: the server would wait for the rows and not answer', async () => {
    const { id, key } = await shop.product(10);
    const alone = shop.client({ pool: { max: 1 } }).prisma;
    const held = alone.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      await tx.$executeRawUnsafe('COPY "Stock" (id, product) FROM STDIN');
    });
    const error = await held.catch((error: unknown) => toFencedLockError(error));
    expect(error).toBeInstanceOf(InsideTransactionError);
    expect(error).toMatchObject({ key, message: expect.stringMatching(/COPY … FROM STDIN.*createMany/) });
    // The connection is good.
    await alone.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test('RESET ALL is refused: the guard would take the holder for a writer without a lock', async () => {
    const { key } = await shop.product(10);
    const held = prisma.$withLock(key, (tx) => tx.$executeRaw`RESET ALL`);
    const error = toFencedLockError(await held.catch((error: unknown) => error));
    expect(error).toMatchObject({
      code: 'INSIDE_TRANSACTION',
      key,
      message: expect.stringContaining('reset all settings'),
    });
    const level = prisma.$withLock(key, async (tx, { token }) => {
      await tx.$executeRaw`SET LOCAL work_mem = '5MB'`;
      await tx.$executeRaw`RESET work_mem`;
      const [row] = await tx.$queryRaw<{ token: string }[]>`SELECT current_setting('fenced_lock.token') AS token`;
      return row?.token === String(token);
    });
    expect(await level).toBe(true);
  });

  test.each(['SELECT 1; COMMIT; SELECT 2', 'DO $do$ BEGIN COMMIT; END $do$'])(
    'a statement behind another one in raw SQL is refused by Postgres itself: %s',
    async (text) => {
      const { id, key } = await shop.product(10);
      const held = prisma.$withLock(key, async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        await tx.$executeRawUnsafe(text);
      });
      await expect(held).rejects.toThrow();
      const swallowed = prisma.$withLock(key, async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        await tx.$queryRawUnsafe(text).catch(() => {});
      });
      await expect(swallowed).rejects.toBeInstanceOf(TransactionAbortedError);
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  test('savepoints stay usable, and a failure behind one does not abort the transaction', async () => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      await tx.$executeRaw`SAVEPOINT before`;
      await tx.$queryRaw`SELECT 1 / 0`.catch(() => {});
      await tx.$executeRaw`ROLLBACK TO SAVEPOINT before`;
    });
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test.each([0, 1])(
    'an event loop that stood still past the timeout commits nothing, %i statements later',
    async (later) => {
      const { id, key } = await shop.product(10);
      const held = prisma.$withLock(
        key,
        async (tx) => {
          await tx.stock.update({ where: { id }, data: { quantity: 0 } });
          const until = performance.now() + 400;
          while (performance.now() < until);
          for (let count = 0; count < later; count++) await tx.stock.count();
        },
        { timeout: 300 },
      );
      await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'timeout', key });
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  test('an event loop that stood still past the lease commits nothing, before any timer has run', async () => {
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        const until = performance.now() + 400;
        while (performance.now() < until);
      },
      { leaseTime: 200 },
    );
    await expect(held).rejects.toMatchObject({ constructor: LockLostError, reason: 'expired' });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test("the role's own time limits are kept where they are smaller, and lock_timeout is put back", async () => {
    const { key } = await shop.product(10);
    const strict = shop.client({
      pool: { options: '-c statement_timeout=700 -c lock_timeout=600 -c idle_in_transaction_session_timeout=50000' },
    }).prisma;
    const limits = await strict.$withLock(
      key,
      (tx) => tx.$queryRaw`
        SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
               current_setting('idle_in_transaction_session_timeout') AS idle,
               current_setting('tcp_user_timeout') AS tcp`,
      { leaseTime: 2_000, timeout: 5_000 },
    );
    expect(limits).toEqual([{ statement: '700ms', lock: '600ms', idle: '2s', tcp: '2000' }]);
    // And nothing of it is left on the connection.
    const after = await strict.$queryRaw`SELECT current_setting('idle_in_transaction_session_timeout') AS idle`;
    expect(after).toEqual([{ idle: '50s' }]);
  });
});
