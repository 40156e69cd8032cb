import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { NestedError, ReentryError } from '../../src/index.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

/** Longer than the last lock has to have ended for async contexts not to be followed any more; ms. */
const REST = 1_300;

describeWithShop('after a while without any lock', () => {
  const shop = new Shop();
  const { prisma, plain } = shop.client();

  beforeEach(async () => {
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => {});
    await sleep(REST);
  });

  /** All that a lock's function finds out by its async context. */
  async function expectAll(): Promise<void> {
    const [{ id, key }, other] = [await shop.product(10), await shop.product(10)];
    const refused = await prisma.$withLock(key, async (tx, lock) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      const inner = await prisma.$withLock(key, async (_, { token }) => {
        await sleep(1);
        return token;
      });
      expect(inner).toBe(lock.token);
      await expect(prisma.$withLock(other.key, () => {})).rejects.toBeInstanceOf(NestedError);
      await expect(prisma.$lock(key)).rejects.toBeInstanceOf(ReentryError);
      const nested = await prisma.$withLock(other.key, (_, { token }) => token, { nested: 'allow' });
      expect(nested).not.toBe(lock.token);
      return await prisma.stock.update({ where: { id }, data: { quantity: 0 } }).catch((error: unknown) => error);
    });
    expect(refused).toMatchObject({ code: 'INSIDE_TRANSACTION', key });
    expect((await shop.row(id))?.quantity).toBe(9);
    // And outside nothing of it.
    expect((await prisma.stock.update({ where: { id }, data: { quantity: 1 } })).quantity).toBe(1);
  }

  test('a lock joins, refuses and begins as ever', () => expectAll());

  test('so do those that begin in the same moment in which that while is over', async () => {
    const { key } = await shop.product(1);
    await prisma.$withLock(key, () => {});
    await sleep(970);
    const all: Promise<void>[] = [];
    for (let since = performance.now(); performance.now() - since < 60; await sleep(4)) all.push(expectAll());
    await Promise.all(all);
  });

  test('one that has been at work all the time is as it was', async () => {
    const { id, key } = await shop.product(10);
    const [inside, goOn] = [gate(), gate()];
    const long = prisma.$withLock(key, async (tx, lock) => {
      inside.open();
      await goOn.opened;
      expect(await prisma.$withLock(key, (_, { token }) => token)).toBe(lock.token);
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      return await prisma.stock.update({ where: { id }, data: { quantity: 0 } }).catch((error: unknown) => error);
    });
    await inside.opened;
    await expectAll();
    await sleep(REST);
    goOn.open();
    expect(await long).toMatchObject({ code: 'INSIDE_TRANSACTION', key });
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test('a client without a lock writes as ever', async () => {
    const { id } = await shop.product(10);
    expect((await plain.stock.update({ where: { id }, data: { quantity: 9 } })).quantity).toBe(9);
  });
});
