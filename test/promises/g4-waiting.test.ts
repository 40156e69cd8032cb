import { expect, test } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { eventually } from '../support/eventually.js';
import { redisProxied } from '../support/proxied.js';
import { atWork, describeWithShop, Shop } from '../support/shop.js';

describeWithShop('G4: a waiting caller costs nothing', () => {
  const shop = new Shop();

  /** How many sessions of an application are in a transaction. */
  async function working(application_name: string): Promise<number> {
    const { rows } = await shop.admin.query(
      `SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = $1 AND state LIKE '%in transaction%'`,
      [application_name],
    );
    return (rows[0] as { n: number }).n;
  }

  /** When the only session of an application last began or ended something. */
  async function lastUsed(application_name: string): Promise<string> {
    const { rows } = await shop.admin.query(
      'SELECT state_change::text AS at FROM pg_stat_activity WHERE application_name = $1',
      [application_name],
    );
    return (rows[0] as { at: string }).at;
  }

  test('a contender whose connection was fetched beside its first look gives it back before it waits', async () => {
    const { key } = await shop.product(1);
    const holder = shop.client().prisma;
    const application_name = `contender ${key}`.slice(0, 60);
    const contender = shop.client({ pool: { max: 1, application_name } });
    // Its last look found a free key, so it expects the next one to do so, too.
    await contender.prisma.$withLock(`${key} calm`, () => {});
    const { held, goOn } = await atWork(holder, key);
    const contended = contender.prisma.$withLock(key, () => 'next');
    const bystander = shop.redis();
    await eventually('the contender waits and has given its connection back', async () => {
      const listening = (await bystander.pubsub('CHANNELS', `*${key}*`)) as string[];
      // Its own channel, and the one that all hear who wait.
      return listening.length === 2 && (await working(application_name)) === 0;
    });
    // Its only connection serves a bystander meanwhile.
    await contender.plain.stock.count();
    goOn();
    await held;
    expect(await contended).toBe('next');
  });

  test('a contender that hears of an offer too late has fetched its connection for nothing, and gives it back', async () => {
    const { key } = await shop.product(1);
    const holder = shop.client().prisma;
    const application_name = `late ${key}`.slice(0, 60);
    const contender = shop.client({ pool: { max: 1, application_name } });
    const { held, goOn } = await atWork(holder, key);
    const contended = contender.prisma.$withLock(key, () => 'next');
    const bystander = shop.redis();
    const { queue, wake } = namesOf('fenced-lock:', key);
    await shop.queued(key);
    const [entry = ''] = await bystander.lrange(queue, 0, 0);
    await contender.plain.stock.count();
    const before = await lastUsed(application_name);
    await bystander.publish(wake, `${entry.split(' ')[0]} 1000`);
    await eventually('it has begun', async () => (await lastUsed(application_name)) !== before);
    await contender.plain.stock.count();
    expect(await working(application_name)).toBe(0);
    goOn();
    await held;
    expect(await contended).toBe('next');
  });

  test('a contender whose look has no answer gives its connection back, too', async () => {
    const { key } = await shop.product(1);
    const { proxy, ...contender } = await redisProxied(shop, { pool: { max: 1 } });
    await contender.prisma.$withLock(`${key} calm`, () => {});
    proxy.silence();
    const contended = contender.prisma.$withLock(key, () => 'next');
    await contender.plain.stock.count();
    // Not because the look was given up, which is an event.
    expect(contender.events).toEqual([]);
    proxy.resume();
    expect(await contended).toBe('next');
  });
});
