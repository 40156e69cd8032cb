import { expect, test } from 'vitest';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { leaseName } from '../waiting/actors.js';

describeWithShop('a released handle', () => {
  const shop = new Shop();

  test('does not hear of what becomes of the lease in the next turn', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const lock = await prisma.$lock(key, { leaseTime: 1_500 });
    const inside = gate();
    const next = prisma.$withLock(
      key,
      async (_, held) => {
        inside.open();
        await new Promise((resolve) => held.signal.addEventListener('abort', resolve));
      },
      { leaseTime: 1_500 },
    );
    await lock.release();
    await inside.opened;
    await shop.redis().del(leaseName(key));
    await expect(next).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(lock.signal.aborted).toBe(false);
  });
});
