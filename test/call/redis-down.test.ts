import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { outages } from './outages.js';

/** ioredis would wait for ten seconds at the least, and by its defaults for ever. */
const OWN_DEFAULTS = 9_000;

describeWithRedis("Redis away, with onRedisUnavailable: 'throw'", (redis) => {
  const { shop, outage, sell, warm } = outages(redis);

  test.each(['frozen', 'dead'])('%s: a call is refused within its wait time, and does nothing', async (how) => {
    const { prisma } = await warm();
    const { id, key } = await shop.product(10);
    const end = await outage(how);
    const since = performance.now();
    const call = prisma.$withLock(key, () => 'in', { waitTime: 500 });
    await expect(call).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', key });
    await expect(prisma.$tryWithLock(key, () => 'in')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await expect(prisma.$lock(key, { waitTime: 300 })).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await expect(prisma.$lock([key, `${key} too`], { waitTime: 0 })).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
    });
    expect(performance.now() - since).toBeLessThan(OWN_DEFAULTS);
    expect((await shop.row(id))?.quantity).toBe(10);
    await end();
  });

  test.each(['frozen', 'dead'])(
    '%s: the same client goes on when it is back, and finds no lease left behind',
    async (how) => {
      const { prisma } = await warm();
      const { id, key } = await shop.product(10);
      const end = await outage(how);
      await expect(prisma.$withLock(key, () => 'in', { waitTime: 300 })).rejects.toMatchObject({
        code: 'LOCK_UNAVAILABLE',
      });
      await end();
      // Far less than the lease that the lost look may have taken.
      const patient = { waitTime: 10_000 };
      expect(await prisma.$withLock(key, () => 'in', patient)).toBe('in');
      await shop.client().prisma.$withLock(key, () => {}, patient);
      await sell(prisma, id, key);
      expect((await shop.row(id))?.quantity).toBe(9);
    },
  );

  test.each(['frozen', 'dead'])('%s: a call that has the time waits until it is back', async (how) => {
    const { prisma, events } = await warm();
    const { key } = await shop.product(10);
    const end = await outage(how);
    const patient = prisma.$withLock(key, () => 'in', { waitTime: 20_000 });
    await eventually('a look has failed', async () => events.some(({ type }) => type === 'look-failed'));
    await end();
    expect(await patient).toBe('in');
  });

  test.each(['frozen', 'dead'])('%s: work that has its lease ends as it would have, and commits', async (how) => {
    const { prisma } = await warm();
    const { id, key } = await shop.product(10);
    let end = async () => {};
    await prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      end = await outage(how);
    });
    expect((await shop.row(id))?.quantity).toBe(9);
    await end();
  });
});
