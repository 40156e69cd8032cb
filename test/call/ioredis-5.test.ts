import { Redis } from 'ioredis-5';
import { expect, inject, test } from 'vitest';
import { describeWithShop, gate, Shop } from '../support/shop.js';

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
    const inside = gate();
    const end = gate();
    const held = holder.prisma.$withLock(
      key,
      async (tx) => {
        inside.open();
        await end.opened;
        await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
      },
      // Long enough to be waited for, short enough to be renewed meanwhile.
      { leaseTime: 1_000 },
    );
    await inside.opened;
    const contended = contender.prisma.$withLock(key, (tx) => tx.stock.findUniqueOrThrow({ where: { id } }));
    // Longer than the lease: only a renewal keeps it.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    end.open();
    await held;
    expect(await contended).toMatchObject({ quantity: 9 });
    expect([...holder.events, ...contender.events]).toEqual([]);
  });
});
