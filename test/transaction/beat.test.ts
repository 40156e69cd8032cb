import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('the renewal', () => {
  const shop = new Shop();

  test('goes on while a ROLLBACK has no answer: the outcome is not known before', async () => {
    const app = inject('postgres').app;
    const { hostname: host, port } = new URL(app);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    const rescue = new PrismaPg({ connectionString: app });
    const { prisma, events } = shop.client({ pool: { connectionString: proxy.url(app) }, rescue });
    shop.closeLater(() => proxy.close());
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
