import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { leaseName } from '../waiting/actors.js';

describeWithShop('several keys', () => {
  const shop = new Shop();

  test('a lease that is lost while the others are waited for ends the waiting, and is told as that', async () => {
    const { key } = await shop.product(1);
    const [one, two] = [`${key}:1`, `${key}:2`];
    const { prisma } = shop.client();
    const lock = await shop.client().prisma.$lock(two);
    const both = prisma.$withLock([one, two], () => 'both', { leaseTime: 1_500 });
    const settled = both.catch((error: unknown) => error);
    const redis = shop.redis();
    while ((await redis.exists(leaseName(one))) === 0) await pause(5);
    await redis.del(leaseName(one));
    expect(await settled).toMatchObject({ code: 'LOCK_LOST', key: one });
    await lock.release();
  });
});

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
