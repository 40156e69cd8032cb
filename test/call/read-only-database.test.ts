import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

/** Longer than any test may take: a call that tries again until then fails. */
const PATIENT = { waitTime: 120_000 };

// As where a hoster has set default_transaction_read_only because the disk is full, and as a standby.
describeWithShop('a read-only database', () => {
  const shop = new Shop();

  const refusal = (key: string) => ({
    code: 'LOCK_UNAVAILABLE',
    key,
    message: expect.stringMatching(/^The database is read-only.*Nothing was done: .*writable primary/),
    cause: { code: '25006' },
  });

  const CALLS: Record<string, (prisma: ShopClient, key: string, work: () => void) => Promise<unknown>> = {
    $withLock: (prisma, key, work) => prisma.$withLock(key, work, PATIENT),
    'several keys': (prisma, key, work) => prisma.$withLock([key, `${key} too`], work, PATIENT),
    $tryWithLock: (prisma, key, work) => prisma.$tryWithLock(key, work),
    $oncePer: (prisma, key, work) => prisma.$oncePer(key, 1_000, work),
    $lock: (prisma, key) => prisma.$lock(key, PATIENT),
  };

  test.each(Object.entries(CALLS))(
    'refuses %s at once with an error of the lock, and leaves it free',
    async (_, call) => {
      const { prisma } = shop.client({ pool: { options: '-c default_transaction_read_only=on' } });
      const { key } = await shop.product(10);
      let runs = 0;
      await expect(call(prisma, key, () => runs++)).rejects.toMatchObject(refusal(key));
      // A call that comes right after it, and may take over its lease.
      await expect(call(prisma, key, () => runs++)).rejects.toMatchObject(refusal(key));
      expect(runs).toBe(0);
      const redis = shop.redis();
      await eventually('Redis has nothing of it', async () => (await redis.keys(`*${key}*`)).length === 0);
      expect(await shop.client().prisma.$withLock(key, () => 'in', PATIENT)).toBe('in');
    },
  );
});
