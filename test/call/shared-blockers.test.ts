import { expect, test } from 'vitest';
import { describeWithRedis } from '../support/redis-suite.js';
import { gate, type ShopClient } from '../support/shop.js';
import { outages } from './outages.js';
import { lookedForBlockers, triedInVain } from './waits-in-postgres.js';

describeWithRedis("Redis away, with onRedisUnavailable: 'postgres'", (redis) => {
  const { shop, outage, warm } = outages(redis);
  const alone = { onRedisUnavailable: 'postgres', commandTimeout: 400 } as const;

  const sellOne = (id: number) => (tx: Pick<ShopClient, 'stock'>) =>
    tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });

  /** Resolves when the function has begun; it ends when it is told to go on. */
  async function atWork(prisma: ShopClient, { id, key }: { id: number; key: string }) {
    const inside = gate();
    const goOn = gate();
    const held = prisma.$withLock(key, async (tx) => {
      inside.open();
      await goOn.opened;
      return await sellOne(id)(tx);
    });
    await inside.opened;
    return { held, goOn };
  }

  test.each([
    ['with a lease', true],
    ['without one', false],
  ])('who waits in Postgres without a lease ends nobody: the other one began %s', async (_, hasLease) => {
    const [holder, contender] = [await warm(alone), await warm(alone)];
    const { id, key } = await shop.product(10);
    const before = hasLease ? await atWork(holder.prisma, { id, key }) : undefined;
    const end = await outage('dead');
    const { held, goOn } = before ?? (await atWork(holder.prisma, { id, key }));
    const next = contender.prisma.$withLock(key, sellOne(id));
    // It does not even look, which would be something to wait for.
    await triedInVain(shop);
    goOn.open();
    expect(await held).toMatchObject({ quantity: 9 });
    expect(await next).toMatchObject({ quantity: 8 });
    await end();
  });

  test.each([
    ['and would get on without it', alone],
    ['and would not', {}],
  ])('who has the lease once Redis is back, %s, does not end who began without it', async (_, options) => {
    const holder = await warm(alone);
    const { id, key } = await shop.product(10);
    const end = await outage('dead');
    const { held, goOn } = await atWork(holder.prisma, { id, key });
    await end();
    const contender = await warm(options);
    const next = contender.prisma.$withLock(key, sellOne(id));
    await lookedForBlockers(shop);
    goOn.open();
    expect(await held).toMatchObject({ quantity: 9 });
    expect(await next).toMatchObject({ quantity: 8 });
    expect(contender.events).toEqual([]);
  });
});
