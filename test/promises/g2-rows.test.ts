import { expect, test } from 'vitest';
import { StaleTokenError } from '../../src/index.js';
import { describeWithShop, Shop } from '../support/shop.js';

const FRESHER = 9_000_000_000_000_000_000n;

describeWithShop('G2: a row of a fenced model never goes back', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  type Tx = Parameters<Parameters<typeof prisma.$withLock<typeof prisma, unknown>>[1]>[0];

  /** A product that was written by a holder of another key, with a token far above ours. */
  async function fresher() {
    const product = await shop.product(10);
    await shop.admin.query('UPDATE "Stock" SET fence = 9000000000000000000 WHERE id = $1', [product.id]);
    return product;
  }

  const WRITES: Record<string, (tx: Tx, id: number) => Promise<unknown>> = {
    update: (tx, id) => tx.stock.update({ where: { id }, data: { quantity: 1 } }),
    updateMany: (tx, id) => tx.stock.updateMany({ where: { id }, data: { quantity: 1 } }),
    updateManyAndReturn: (tx, id) => tx.stock.updateManyAndReturn({ where: { id }, data: { quantity: 1 } }),
    delete: (tx, id) => tx.stock.delete({ where: { id } }),
    deleteMany: (tx, id) => tx.stock.deleteMany({ where: { id } }),
    upsert: (tx, id) =>
      tx.stock.upsert({ where: { id }, update: { quantity: 1 }, create: { product: `new ${id}`, quantity: 1 } }),
  };

  test.each(Object.entries(WRITES))('%s of a fresher row is refused, and the row stays', async (_, write) => {
    const { id, key } = await fresher();
    const error = await prisma.$withLock(key, (tx) => write(tx, id)).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StaleTokenError);
    expect(error).toMatchObject({ code: 'STALE_TOKEN', key, model: 'Stock', reason: 'other-key', fence: FRESHER });
    expect(await shop.row(id)).toEqual({ quantity: 10, fence: FRESHER });
  });

  test.each(Object.entries(WRITES))('%s of a row that we wrote before in this turn goes through', async (_, write) => {
    const { id, key } = await shop.product(10);
    const token = await prisma.$withLock(key, async (tx, lock) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      await write(tx, id);
      return lock.token;
    });
    expect([undefined, { quantity: 1, fence: token }]).toContainEqual(await shop.row(id));
  });

  test.each(['create', 'createMany', 'createManyAndReturn', 'upsert'] as const)(
    '%s puts the token into the new row',
    async (operation) => {
      const { key } = await shop.product(1);
      const data = { product: `made by ${operation} ${key}`, quantity: 3 };
      const token = await prisma.$withLock(key, async (tx, lock) => {
        if (operation === 'create') await tx.stock.create({ data });
        else if (operation === 'createMany') await tx.stock.createMany({ data: [data] });
        else if (operation === 'createManyAndReturn') await tx.stock.createManyAndReturn({ data: [data] });
        else await tx.stock.upsert({ where: { product: data.product }, create: data, update: { quantity: 4 } });
        return lock.token;
      });
      const { rows } = await shop.admin.query('SELECT fence, quantity FROM "Stock" WHERE product = $1', [data.product]);
      expect(rows).toEqual([{ fence: String(token), quantity: 3 }]);
    },
  );

  test('a fresher row that arrives while our write waits for it is not overwritten', async () => {
    const { id, key } = await shop.product(10);
    const bystander = await shop.admin.connect();
    try {
      await bystander.query('BEGIN');
      await bystander.query('UPDATE "Stock" SET fence = 9000000000000000000 WHERE id = $1', [id]);
      const contended = prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 1 } }));
      await shop.blocked('"Stock"');
      await bystander.query('COMMIT');
      await expect(contended).rejects.toBeInstanceOf(StaleTokenError);
    } finally {
      bystander.release(true);
    }
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('a caller that swallows StaleTokenError still cannot commit', async () => {
    const stale = await fresher();
    const own = await shop.product(10);
    const held = prisma.$withLock(stale.key, async (tx) => {
      await tx.stock.update({ where: { id: own.id }, data: { quantity: 1 } });
      await tx.stock.update({ where: { id: stale.id }, data: { quantity: 1 } }).catch(() => {});
    });
    await expect(held).rejects.toBeInstanceOf(StaleTokenError);
    expect((await shop.row(own.id))?.quantity).toBe(10);
  });

  test('a row that is not there is no stale row: the error is the one that Prisma gives', async () => {
    const { key } = await shop.product(1);
    const held = prisma.$withLock(key, (tx) => tx.stock.update({ where: { id: -1 }, data: { quantity: 1 } }));
    await expect(held).rejects.toMatchObject({ code: 'P2025' });
  });

  test('`limit` on a fenced model is refused, because its condition would not be looked at again', async () => {
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, (tx) => tx.stock.updateMany({ where: { id }, data: { quantity: 1 }, limit: 1 }));
    await expect(held).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'limit' });
  });
});
