import { expect, test } from 'vitest';
import { NestedError, ReentryError } from '../../src/index.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a lock of several keys inside another', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const keysOf = async () => [(await shop.product(1)).key, (await shop.product(1)).key] as const;

  test('joins if the outer one has them all, in whatever order they are named', async () => {
    const [one, two] = await keysOf();
    await prisma.$withLock([one, two], async (_, outer) => {
      for (const inner of [one, two, [two, one], [two, two]]) {
        expect(await prisma.$withLock(inner, (_, lock) => lock.token)).toBe(outer.token);
      }
    });
  });

  test('is refused if the outer one has some of them, also where nested ones are allowed', async () => {
    const [one, two] = await keysOf();
    for (const nested of ['throw', 'allow'] as const) {
      const held = prisma.$withLock(one, () => prisma.$withLock([one, two], () => 'inner', { nested }));
      await expect(held).rejects.toMatchObject({ constructor: ReentryError, key: one });
    }
  });
});

describeWithShop('a lock inside a lock of another key', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const keysOf = async () => [(await shop.product(1)).key, (await shop.product(1)).key] as const;

  test('is refused and allowed alike for a handle, and for the transaction of one', async () => {
    const [outer, inner] = await keysOf();
    const lock = await prisma.$lock(inner);
    await prisma.$withLock(outer, async () => {
      await expect(lock.$transaction(() => 'inner')).rejects.toBeInstanceOf(NestedError);
      expect(await lock.$transaction(() => 'inner', { nested: 'allow' })).toBe('inner');
    });
    await lock.release();
    await prisma.$withLock(outer, async () => {
      await expect(prisma.$lock(inner)).rejects.toBeInstanceOf(NestedError);
      await (await prisma.$lock(inner, { nested: 'allow' })).release();
    });
    const outermost = await prisma.$lock(outer);
    const inHandle = outermost.$transaction(() => prisma.$withLock(inner, () => 'inner'));
    await expect(inHandle).rejects.toMatchObject({ constructor: NestedError, key: inner });
    await outermost.release();
  });
});
