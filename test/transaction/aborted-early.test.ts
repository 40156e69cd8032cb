import { expect, test } from 'vitest';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a call that is struck before it is admitted', () => {
  const shop = new Shop();

  test('rejects with the reason of its signal, also where that is an error of a database', async () => {
    const { key } = await shop.product(1);
    // Has the key's row, and another lease: as with onRedisUnavailable: 'postgres', or after a flush.
    const other = shop.client({ keyPrefix: 'other:' }).prisma;
    const { prisma } = shop.client();
    const [inside, goOn] = [gate(), gate()];
    const held = other.$withLock(key, async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const abort = new AbortController();
    const reason = Object.assign(new Error('a write conflict of another call'), { code: 'P2034' });
    const call = prisma.$withLock(key, () => 'in', { signal: abort.signal, waitTime: 2_000 });
    call.catch(() => {});
    await shop.blocked('fenced_lock.admit');
    abort.abort(reason);
    await expect(call).rejects.toBe(reason);
    goOn.open();
    await held.catch(() => {});
  });
});
