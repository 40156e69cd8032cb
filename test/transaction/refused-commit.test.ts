import { expect, test } from 'vitest';
import { slowCommit } from '../call/slow-commit.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a COMMIT that Postgres refuses', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  /** A sale whose COMMIT a deferred trigger refuses with this SQLSTATE, as often. */
  async function refusedSale(sqlState: string, { times = 1, retries = 0 } = {}) {
    const { id, key } = await shop.product(10);
    const slow = await slowCommit(shop, sqlState);
    await slow.goOn();
    let runs = 0;
    const held = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        await tx.$executeRawUnsafe(slow.insert(++runs <= times));
        return runs;
      },
      { retries },
    );
    held.catch(() => {});
    return { id, key, held };
  }

  test.each(['40001', '40P01'])('for a conflict (%s): the same, and the message names `retries`', async (code) => {
    const { id, key, held } = await refusedSale(code, { times: 2, retries: 1 });
    const expected = { code: 'TRANSACTION_ABORTED', reason: 'failed-statement', key, cause: { code } };
    await expect(held).rejects.toMatchObject(expected);
    await expect(held).rejects.toThrow('`retries`');
    expect((await shop.row(id))?.quantity).toBe(10);
    const repeated = await refusedSale(code, { times: 2, retries: 2 });
    expect(await repeated.held).toBe(3);
  });

  test('for a conflict that the function has swallowed: the same, and `retries` runs it again', async () => {
    const { id, key } = await shop.product(10);
    let runs = 0;
    const sale = (retries: number) =>
      prisma.$withLock(
        key,
        async (tx) => {
          await tx.stock.update({ where: { id }, data: { quantity: 9 } });
          const conflict = "DO $$ BEGIN RAISE 'conflict' USING ERRCODE = '40001'; END $$";
          if (++runs % 2 === 1) await tx.$executeRawUnsafe(conflict).catch(() => {});
        },
        { retries },
      );
    await expect(sale(0)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'failed-statement', key });
    expect((await shop.row(id))?.quantity).toBe(10);
    runs = 0;
    await sale(1);
    expect(runs).toBe(2);
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test('because it is slower than the timeout: rolled back, and the error says so', async () => {
    const timeout = 900;
    const { id, key } = await shop.product(10);
    const slow = await slowCommit(shop);
    const { prisma: own, events } = shop.client();
    // A client's first call takes longer.
    await own.$withLock(key, (tx) => tx.stock.count());
    const held = own.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        await tx.$executeRawUnsafe(slow.insert());
      },
      { timeout },
    );
    await expect(held).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
      reason: 'timeout',
      key,
      message: expect.stringMatching(
        new RegExp(`COMMIT had not ended within its timeout of ${timeout} ms.*raise \`timeout\``),
      ),
    });
    await slow.goOn();
    expect(events).toContainEqual({ type: 'commit-resolved', key, outcome: 'aborted' });
    const next = prisma.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
    await expect(next).resolves.toMatchObject({ quantity: 10 });
  });

  test('because somebody cancels it: a failed statement, and no timeout', async () => {
    const { id, key } = await shop.product(10);
    const slow = await slowCommit(shop);
    const held = prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        await tx.$executeRawUnsafe(slow.insert());
      },
      { timeout: 60_000 },
    );
    const refused = expect(held).rejects.toMatchObject({
      code: 'TRANSACTION_ABORTED',
      reason: 'failed-statement',
      cause: { code: '57014' },
    });
    await shop.admin.query('SELECT pg_cancel_backend($1)', [await shop.blocked('COMMIT')]);
    await refused;
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});

describeWithShop('a work that has begun', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test.each(['55P03', '40001', '57P01'])('and fails with %s is not begun again', async (code) => {
    const { key } = await shop.product(10);
    let runs = 0;
    const held = prisma.$withLock(key, async (tx) => {
      runs++;
      await tx.$executeRawUnsafe(`DO $$ BEGIN RAISE EXCEPTION 'no sale' USING ERRCODE = '${code}'; END $$`);
    });
    await expect(held).rejects.toThrow('no sale');
    expect(runs).toBe(1);
  });
});
