import { once } from 'node:events';
import { expect, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

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

describeWithShop('what is thrown and cannot be read', () => {
  const shop = new Shop();

  test.each(Object.entries(UNREADABLE))(
    '%s: the caller gets it, and a hook that throws it is a warning',
    async (_, make) => {
      const { prisma } = shop.client({ onEvent: undefined });
      const { key } = await shop.product(10);
      const thrown = make();
      const work = () => {
        throw thrown;
      };
      // Not by an assertion, which would read it.
      const isSame = (call: Promise<unknown>) => call.then(() => false).catch((error) => error === thrown);
      expect(await isSame(prisma.$withLock(key, work, { retries: 1 }))).toBe(true);
      expect(await isSame(prisma.$oncePer(key, 60_000, work))).toBe(true);
      await using handle = await prisma.$lock(`${key} handle`);
      expect(await isSame(handle.$transaction(work))).toBe(true);
      const warned = once(process, 'warning');
      const ran: string[] = [];
      await prisma.$withLock(key, (_, lock) => {
        lock.afterCommit(work);
        lock.afterCommit(() => ran.push('the next one'));
      });
      expect(ran).toEqual(['the next one']);
      expect(await warned).toMatchObject([{ code: 'FENCED_LOCK_HOOK' }]);
    },
  );
});
