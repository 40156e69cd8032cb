import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

/** What may be thrown, of which nothing can be read. */
const UNREADABLE: Record<string, () => unknown> = {
  'an error with getters that throw': () => {
    const get = () => {
      throw new Error('of a getter');
    };
    const error = new Error();
    for (const field of ['stack', 'name', 'message', 'cause', 'code', 'meta', 'toString']) {
      Object.defineProperty(error, field, { get });
    }
    return error;
  },
  'a proxy that was revoked': () => {
    const { proxy, revoke } = Proxy.revocable(new Error(), {});
    revoke();
    return proxy;
  },
};

/** Each runs a function under the lock that throws. */
const CALLS: Record<string, (prisma: ShopClient, key: string, work: () => never) => Promise<unknown>> = {
  $withLock: (prisma, key, work) => prisma.$withLock(key, work),
  '$withLock with retries': (prisma, key, work) => prisma.$withLock(key, work, { retries: 1 }),
  $tryWithLock: (prisma, key, work) => prisma.$tryWithLock(key, work),
  $oncePer: (prisma, key, work) => prisma.$oncePer(key, 60_000, work),
  'a handle': async (prisma, key, work) => {
    await using handle = await prisma.$lock(key);
    return await handle.$transaction(work);
  },
};

describeWithShop('what is thrown and cannot be read', () => {
  const shop = new Shop();

  describe.each(Object.entries(UNREADABLE))('%s', (_, make) => {
    /** Not by an assertion, which would read it. */
    const isSame = (call: Promise<unknown>, thrown: unknown) =>
      call.then(() => false).catch((error) => error === thrown);

    test.each(Object.entries(CALLS))('is what the caller of %s gets', async (_, run) => {
      const { key } = await shop.product(10);
      const thrown = make();
      const call = run(shop.client().prisma, key, () => {
        throw thrown;
      });
      expect(await isSame(call, thrown)).toBe(true);
    });

    test('by a hook is a warning, and the next hook runs', async () => {
      const { prisma } = shop.client({ onEvent: undefined });
      const { key } = await shop.product(10);
      const warned = once(process, 'warning');
      let next = false;
      await prisma.$withLock(key, (_, lock) => {
        lock.afterCommit(() => {
          throw make();
        });
        lock.afterCommit(() => {
          next = true;
        });
      });
      expect(next).toBe(true);
      expect(await warned).toMatchObject([{ code: 'FENCED_LOCK_HOOK' }]);
    });
  });
});
