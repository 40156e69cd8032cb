import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { proxied } from '../support/proxied.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('the renewal', () => {
  const shop = new Shop();

  test('goes on while a ROLLBACK has no answer: the outcome is not known before', async () => {
    const { prisma, proxy, events } = await proxied(shop, inject('postgres').app);
    const { key } = await shop.product(10);
    const held = prisma.$withLock(
      key,
      () => {
        proxy.silence();
        throw new Error('no sale');
      },
      { leaseTime: 1_200, timeout: 20_000 },
    );
    const refused = expect(held).rejects.toThrow('no sale');
    const redis = shop.redis();
    let [renewals, left] = [0, 0];
    await eventually('the lease has been renewed for longer than its time', async () => {
      const now = await redis.pttl(`fenced-lock:{${key}}:lease`);
      if (now > left) renewals++;
      left = now;
      return renewals > 4;
    });
    proxy.resume();
    await refused;
    expect(events).toEqual([]);
  });
});
