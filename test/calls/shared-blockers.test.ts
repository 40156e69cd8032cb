import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { gate, type ShopClient } from '../support/shop.js';
import { outages } from './outages.js';

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

  /** Somebody has waited for an admission, given it up as one does who finds the key's row taken, and tried again. */
  async function triedTwice(): Promise<void> {
    const attempts = new Set<string>();
    await eventually('it has tried again, twice', async () => {
      const { rows } = await shop.admin.query(
        `SELECT xact_start::text AS begun FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND position('fenced_lock.admit' in query) > 0`,
      );
      for (const { begun } of rows as { begun: string }[]) attempts.add(begun);
      return attempts.size > 2;
    });
  }

  test('one who waits in Postgres ends nobody: the other one has the key as rightfully', async () => {
    const [holder, contender] = [await warm(alone), await warm(alone)];
    const { id, key } = await shop.product(10);
    const end = await outage('dead');
    const { held, goOn } = await atWork(holder.prisma, { id, key });
    const next = contender.prisma.$withLock(key, sellOne(id));
    await triedTwice();
    goOn.open();
    expect(await held).toMatchObject({ quantity: 9 });
    expect(await next).toMatchObject({ quantity: 8 });
    await end();
  });

  test('who has the lease once Redis is back does not end who began without it, either', async () => {
    const holder = await warm(alone);
    const { id, key } = await shop.product(10);
    const end = await outage('dead');
    const { held, goOn } = await atWork(holder.prisma, { id, key });
    await end();
    const contender = await warm(alone);
    const next = contender.prisma.$withLock(key, sellOne(id));
    await triedTwice();
    goOn.open();
    expect(await held).toMatchObject({ quantity: 9 });
    expect(await next).toMatchObject({ quantity: 8 });
    expect(contender.events).toEqual([]);
  });
});
