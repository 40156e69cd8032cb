import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { atWork, sale } from '../support/shop.js';
import { outages } from './outages.js';
import { lookedForBlockers, triedInVain } from './waits-in-postgres.js';

describeWithRedis("Redis away, with onRedisUnavailable: 'postgres'", (redis) => {
  const { shop, outage, sell, warm } = outages(redis);
  const alone = { onRedisUnavailable: 'postgres', commandTimeout: 400 } as const;

  test('loses no update while it goes away and comes back, again and again', async () => {
    const actors = [await warm(alone), await warm(alone)];
    const { id, key } = await shop.product(100_000);
    let sold = 0;
    let enough = false;
    const failures: unknown[] = [];
    const loops = actors.flatMap(({ prisma }) =>
      Array.from({ length: 4 }, async () => {
        while (!enough) {
          await sell(prisma, id, key).then(
            () => sold++,
            (error: unknown) => failures.push(error),
          );
        }
      }),
    );
    const more = async () => {
      const from = sold;
      // More than may pass from caller to caller by a lease, and by one more that Redis gave in its last moment.
      await eventually('more was sold', async () => sold > from + 60);
    };
    const seen = (type: string) => actors.map(({ events }) => events.filter((event) => event.type === type).length);
    for (const [index, how] of ['frozen', 'dead'].entries()) {
      await more();
      const end = await outage(how);
      await more();
      await end();
      // Who slept through it in the queue has not noticed anything.
      await eventually('all who noticed know that it is back', async () => {
        const [passedBy, back] = [seen('redis-passed-by'), seen('redis-back')];
        const times = back.reduce((sum, each) => sum + each, 0);
        return times > index && back.every((each, actor) => each === passedBy[actor]);
      });
    }
    await more();
    enough = true;
    await Promise.all(loops);
    expect((await shop.row(id))?.quantity).toBe(100_000 - sold);
    expect(failures).toEqual([]);
  }, 90_000);

  test('never more than so many permits are at work, and each is used', async () => {
    const actors = [await warm(alone), await warm(alone)];
    const { key } = await shop.product(1);
    const end = await outage('frozen');
    const at = new Map<number, number>();
    const most = new Map<number, number>();
    const calls = actors.flatMap(({ prisma }) =>
      Array.from({ length: 12 }, () =>
        prisma.$withPermit(key, { permits: 2 }, async (tx, { permit }) => {
          at.set(permit, (at.get(permit) ?? 0) + 1);
          await tx.$queryRaw`SELECT 1 FROM (SELECT pg_sleep(0.01)) AS s`;
          most.set(permit, Math.max(most.get(permit) ?? 0, at.get(permit) ?? 0));
          at.set(permit, (at.get(permit) ?? 0) - 1);
        }),
      ),
    );
    await Promise.all(calls);
    expect([...most].toSorted()).toEqual([
      [0, 1],
      [1, 1],
    ]);
    await end();
  });

  test('frozen: only the first call meets its silence', async () => {
    const { prisma, events } = await warm(alone);
    const { id, key } = await shop.product(20);
    const end = await outage('frozen');
    for (let sale = 0; sale < 10; sale++) await sell(prisma, id, key);
    expect(events.filter(({ type }) => type === 'redis-passed-by')).toHaveLength(1);
    expect((await shop.row(id))?.quantity).toBe(10);
    await end();
    // It is asked now and then, and by a call: nothing runs in an idle process.
    await eventually('it is used again', async () => {
      await sell(prisma, id, key);
      return events.some(({ type }) => type === 'redis-back');
    });
    const holder = await prisma.$lock(key);
    expect(await (await warm()).prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: false });
    await holder.release();
  });

  test.each(['frozen', 'dead'])(
    '%s: a handle is refused, because nothing would keep others out between its transactions',
    async (how) => {
      const { prisma } = await warm(alone);
      const { key } = await shop.product(20);
      const end = await outage(how);
      const briefly = { waitTime: 1_000 };
      await expect(prisma.$lock(key, briefly)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', key });
      const both = prisma.$lock([key, `${key} too`], briefly);
      await expect(both).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      // And it stands in nobody's way.
      expect(await prisma.$withLock(key, () => 'in')).toBe('in');
      await end();
    },
  );

  test.each(['frozen', 'dead'])('%s: a caller that was asleep in the queue gets on', async (how) => {
    const [holder, sleeper] = [(await warm(alone)).prisma, (await warm(alone)).prisma];
    const { id, key } = await shop.product(20);
    const { held, goOn } = await atWork(holder, key, sale(id));
    const asleep = sleeper.$withLock(key, sale(id), { waitTime: 20_000 });
    await shop.queued(key);
    const end = await outage(how);
    goOn();
    await held;
    expect(await asleep).toBe(18);
    await end();
  });

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
