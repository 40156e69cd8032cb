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
});
