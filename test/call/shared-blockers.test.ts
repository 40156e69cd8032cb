import { expect, test } from 'vitest';
import { describeWithRedis } from '../support/redis-suite.js';
import { atWork, sale } from '../support/shop.js';
import { outages } from './outages.js';
import { lookedForBlockers, triedInVain } from './waits-in-postgres.js';

describeWithRedis("Redis away, with onRedisUnavailable: 'postgres'", (redis) => {
  const { shop, outage, warm } = outages(redis);
  const alone = { onRedisUnavailable: 'postgres', commandTimeout: 400 } as const;

  test.each([
    ['with a lease', true],
    ['without one', false],
  ])('who waits in Postgres without a lease ends nobody: the other one began %s', async (_, hasLease) => {
    const [holder, contender] = [await warm(alone), await warm(alone)];
    const { id, key } = await shop.product(10);
    const before = hasLease ? await atWork(holder.prisma, key, sale(id)) : undefined;
    const end = await outage('dead');
    const { held, goOn } = before ?? (await atWork(holder.prisma, key, sale(id)));
    const next = contender.prisma.$withLock(key, sale(id));
    // It does not even look, which would be something to wait for.
    await triedInVain(shop);
    goOn();
    expect(await held).toBe(9);
    expect(await next).toBe(8);
    await end();
  });

  test.each([
    ['and would get on without it', alone],
    ['and would not', {}],
  ])('who has the lease once Redis is back, %s, does not end who began without it', async (_, options) => {
    const holder = await warm(alone);
    const { id, key } = await shop.product(10);
    const end = await outage('dead');
    const { held, goOn } = await atWork(holder.prisma, key, sale(id));
    await end();
    const contender = await warm(options);
    const next = contender.prisma.$withLock(key, sale(id));
    await lookedForBlockers(shop);
    goOn();
    expect(await held).toBe(9);
    expect(await next).toBe(8);
    expect(contender.events).toEqual([]);
  });
});
