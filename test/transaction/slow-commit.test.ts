import { expect, test } from 'vitest';
import { slowCommit } from '../call/slow-commit.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a COMMIT that is slower than the timeout', () => {
  const shop = new Shop();

  test('is rolled back, because of that timeout', async () => {
    const timeout = 900;
    const { id, key } = await shop.product(10);
    const slow = await slowCommit(shop);
    const { prisma, events } = shop.client();
    // A client's first call takes longer.
    await prisma.$withLock(key, (tx) => tx.stock.count());
    const held = prisma.$withLock(
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
    const next = shop.client().prisma.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
    await expect(next).resolves.toMatchObject({ quantity: 10 });
  });

  test('is none, where somebody cancels it before the timeout', async () => {
    const { id, key } = await shop.product(10);
    const slow = await slowCommit(shop);
    const held = shop.client().prisma.$withLock(
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
