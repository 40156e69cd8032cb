import { expect, test } from 'vitest';
import { now } from '../../src/base/clock.js';
import { LockLostError } from '../../src/index.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a process that stood still past its lease and past the timeout of the work', () => {
  const shop = new Shop();

  test.each([true, false])('is told that the lease is lost (renewed: %s)', async (renew) => {
    const { prisma } = shop.client();
    const { key } = await shop.product(1);
    const held = prisma.$withLock(
      key,
      () => {
        const since = now();
        while (now() - since < 700);
        return new Promise<never>(() => {});
      },
      { leaseTime: 500, timeout: 300, renew },
    );
    await expect(held).rejects.toBeInstanceOf(LockLostError);
  });
});
