import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { beforeEach, expect, inject, test } from 'vitest';
import { fencedLock, NestedError, ReentryError } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { busy } from '../support/busy.js';
import { eventually } from '../support/eventually.js';
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

  test('a write that a function has left behind, and that still waits for a connection, is refused all the same', async () => {
    const { id, key } = await shop.product(10);
    const pool = new pg.Pool({ connectionString: inject('postgres').app, max: 1 });
    const narrow = new PrismaClient({ adapter: new PrismaPg(pool, { disposeExternalPool: true }) });
    shop.closeLater(() => narrow.$disconnect());
    const locking = narrow.$extends(fencedLock({ redis: shop.redis() }));
    let bystander: Promise<{ letGo(): Promise<void> }> | undefined;
    let left: Promise<unknown> | undefined;
    await locking.$withLock(key, async () => {
      bystander = busy(narrow);
      // Of two rows, and so in a transaction.
      const orders = { create: { buyer: 'late', quantity: 1 } };
      left = locking.stock.update({ where: { id }, data: { quantity: 0, orders } }).catch((error: unknown) => error);
      await eventually('both wait for a connection', async () => pool.waitingCount === 2);
    });
    const { letGo } = await (bystander as Promise<{ letGo(): Promise<void> }>);
    await sleep(REST);
    await letGo();
    expect(await left).toMatchObject({ code: 'INSIDE_TRANSACTION', key });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('a client without a lock writes as ever', async () => {
    const { id } = await shop.product(10);
    expect((await plain.stock.update({ where: { id }, data: { quantity: 9 } })).quantity).toBe(9);
  });
});
