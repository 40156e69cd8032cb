import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test } from 'vitest';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('the function of a caller whose turn the caller before it has passed on', () => {
  const shop = new Shop();
  const tenants = new AsyncLocalStorage<string>();

  // Only calls of one client follow each other in one flight with COMMIT.
  test.each(['its COMMIT', 'its lease'])('runs in the async context of its caller: by %s', async (by) => {
    const { prisma } = shop.client();
    const another = by === 'its COMMIT' ? prisma : prisma.$extends({});
    const { key } = await shop.product(1);
    const names = ['the first tenant', 'the second tenant', 'the third tenant'];
    const found = names.map((name, index) =>
      tenants.run(name, () => (index % 2 === 0 ? prisma : another).$withLock(key, () => tenants.getStore())),
    );
    expect(await Promise.all(found)).toEqual(names);
  });
});

describeWithShop('the function of a caller whose turn another process has passed on', () => {
  const shop = new Shop();
  const tenants = new AsyncLocalStorage<string>();

  test('runs in the async context of its caller, not of the one that began to wait and gave up', async () => {
    const { prisma } = shop.client();
    const { key } = await shop.product(1);
    const held = await shop.client().prisma.$lock(key);
    const gaveUp = new AbortController();
    const first = tenants.run('the first tenant', () =>
      prisma.$withLock(key, () => tenants.getStore(), { signal: gaveUp.signal }),
    );
    await shop.queued(key);
    const second = tenants.run('the second tenant', () => prisma.$withLock(key, () => tenants.getStore()));
    gaveUp.abort('enough');
    await expect(first).rejects.toBe('enough');
    await held.release();
    expect(await second).toBe('the second tenant');
  });

  test('is in no lock of the one that began to wait: it is refused what that one holds', async () => {
    const { prisma } = shop.client();
    const [{ key }, { key: other }] = [await shop.product(1), await shop.product(1)];
    const held = await shop.client().prisma.$lock(key);
    const [gaveUp, given, goOn] = [new AbortController(), gate(), gate()];
    const holderOfOther = prisma.$withLock(other, async () => {
      const inner = prisma.$withLock(key, () => {}, { nested: 'allow', signal: gaveUp.signal });
      await inner.catch(() => given.open());
      await goOn.opened;
    });
    await shop.queued(key);
    const next = prisma.$withLock(key, () => prisma.$tryWithLock(other, () => 'joined', { nested: 'allow' }));
    gaveUp.abort('enough');
    await given.opened;
    await held.release();
    expect(await next).toEqual({ acquired: false });
    goOn.open();
    await holderOfOther;
  });
});
