import { Redis } from 'ioredis-5';
import { expect, inject, test } from 'vitest';
import { atWork, describeWithShop, Shop, sale } from '../support/shop.js';

describeWithShop('with ioredis 5', () => {
  const shop = new Shop();
  const client = () => {
    const redis = new Redis(inject('redis').url as string);
    shop.closeLater(() => redis.disconnect());
    return shop.client({ redis });
  };

  test('a call waits, is woken, and works', async () => {
    const { id, key } = await shop.product(10);
    const [holder, contender] = [client(), client()];
    // Long enough to be waited for, short enough to be renewed meanwhile.
    const { held, goOn } = await atWork(holder.prisma, key, sale(id), { leaseTime: 1_000 });
    const contended = contender.prisma.$withLock(key, sale(id));
    // Longer than the lease: only a renewal keeps it.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    goOn();
    await held;
    expect(await contended).toBe(8);
    expect([...holder.events, ...contender.events]).toEqual([]);
  });
});
