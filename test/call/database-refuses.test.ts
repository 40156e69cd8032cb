import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/servers/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

/** Longer than any test may take: a call that tries again until then fails. */
const PATIENT = { waitTime: 120_000 };

// As docs/errors.md says: "Errors that come from Prisma".
describeWithShop('what comes from Prisma', () => {
  const shop = new Shop();

  const clientAt = (url: string) => shop.client({ pool: { connectionString: url } });

  test('P1003: a database that does not exist', async () => {
    const { plain, prisma } = clientAt(Object.assign(new URL(inject('postgres').app), { pathname: '/not_there' }).href);
    const { key } = await shop.product(1);
    await expect(plain.stock.count()).rejects.toMatchObject({ code: 'P1003' });
    await expect(prisma.$withLock(key, () => {})).rejects.toMatchObject({ code: 'P1003' });
  });

  test('P1001: a server that cannot be reached; a lock tries again for its waitTime, and then says so', async () => {
    const { plain, prisma } = clientAt(
      Object.assign(new URL(inject('postgres').app), { port: String(await freePort()) }).href,
    );
    const { key } = await shop.product(1);
    await expect(plain.stock.count()).rejects.toMatchObject({ code: 'P1001' });
    await expect(prisma.$withLock(key, () => {}, { waitTime: 300 })).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      message: expect.stringMatching(/^Postgres gave no usable answer/),
    });
  });
});

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
