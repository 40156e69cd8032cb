import { expect, test } from 'vitest';
import { NestedError, ReentryError } from '../../src/index.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a lock inside a lock', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test('of the same key is refused at once, instead of waiting for itself', async () => {
    const { key } = await shop.product(1);
    const held = prisma.$withLock(key, () => prisma.$withLock(key, () => 'inner'));
    await expect(held).rejects.toMatchObject({ constructor: ReentryError, key });
  });

  test('of another key is refused, and names both', async () => {
    const [outer, inner] = [await shop.product(1), await shop.product(1)];
    const held = prisma.$withLock(outer.key, () => prisma.$withLock(inner.key, () => 'inner'));
    await expect(held).rejects.toMatchObject({ constructor: NestedError, message: expect.stringContaining(outer.key) });
  });

  test('of another key is had where the caller allows it, and of the same key never', async () => {
    const [outer, inner] = [await shop.product(1), await shop.product(1)];
    const nested = 'allow';
    const held = prisma.$withLock(outer.key, () => prisma.$withLock(inner.key, () => 'inner', { nested }));
    expect(await held).toBe('inner');
    const again = prisma.$withLock(outer.key, () =>
      prisma.$withLock(inner.key, () => prisma.$withLock(outer.key, () => 'self', { nested }), { nested }),
    );
    await expect(again).rejects.toBeInstanceOf(ReentryError);
  });

  test('is none where the outer function has ended, though its context goes on', async () => {
    const { key } = await shop.product(1);
    const ended = gate();
    const { later } = await prisma.$withLock(key, () => ({
      later: ended.opened.then(() => prisma.$withLock(key, () => 'later')),
    }));
    ended.open();
    expect(await later).toBe('later');
  });

  test('is none in another async context', async () => {
    const { key } = await shop.product(1);
    const inside = gate();
    const goOn = gate();
    const holder = prisma.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const contender = prisma.$withLock(key, () => 'next');
    goOn.open();
    await holder;
    expect(await contender).toBe('next');
  });
});
