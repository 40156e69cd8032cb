import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

/** Both ways to close the locks of a client. */
const WAYS: Record<string, (client: ShopClient) => Promise<void>> = {
  $disconnect: (client) => client.$disconnect(),
  '$locks.close': (client) => client.$locks.close(),
};

describeWithShop('the end of a client', () => {
  const shop = new Shop();

  /** What Redis has of a key. */
  const inRedis = (key: string) => shop.redis().keys(`*${key}*`);

  test.each(Object.entries(WAYS))('%s turns away who waits, and lets the work that runs commit', async (_, close) => {
    const { id, key } = await shop.product(10);
    const elsewhere = await shop.product(10);
    const { prisma } = shop.client();
    const lock = await shop.client().prisma.$lock(elsewhere.key);
    const inside = gate();
    const goOn = gate();
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const codeOf = (waiting: Promise<unknown>) => waiting.catch((error: { code?: string }) => error.code);
    const waiters = [
      codeOf(prisma.$withLock(key, () => 'in')),
      codeOf(prisma.$lock(key)),
      codeOf(prisma.$withLock(elsewhere.key, () => 'in')),
      codeOf(prisma.$withLock([`${elsewhere.key} too`, elsewhere.key], () => 'in')),
    ];
    const redis = shop.redis();
    await eventually('one waits elsewhere, too', async () => {
      return (await redis.llen(`fenced-lock:{${elsewhere.key}}:queue`)) === 1;
    });
    const steps: string[] = [];
    const closed = close(prisma).then(() => steps.push('closed'));
    expect(await Promise.all(waiters)).toEqual(waiters.map(() => 'CLOSED'));
    expect(await codeOf(prisma.$withLock(`${key} new`, () => 'in'))).toBe('CLOSED');
    goOn.open();
    await held.then(() => steps.push('committed'));
    await closed;
    expect(steps).toEqual(['committed', 'closed']);
    expect((await shop.row(id))?.quantity).toBe(9);
    // All that it had is given back: its lease, and its place in the queue.
    expect(await inRedis(key)).toEqual([]);
    expect(await inRedis(elsewhere.key)).toEqual([`fenced-lock:{${elsewhere.key}}:lease`]);
    await lock.release();
  });

  test.each(Object.entries(WAYS))(
    '%s gives handles back, when the transaction that runs has ended',
    async (_, close) => {
      const { id, key } = await shop.product(10);
      const idle = await shop.product(10);
      const { prisma } = shop.client();
      const [lock, other] = [await prisma.$lock(key), await prisma.$lock(idle.key)];
      const resumed = await prisma.$resumeLock(JSON.parse(JSON.stringify(other)));
      const inside = gate();
      const goOn = gate();
      const work = lock.$transaction(async (tx) => {
        inside.open();
        await goOn.opened;
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      });
      await inside.opened;
      const closing = close(prisma);
      goOn.open();
      await work;
      await closing;
      expect((await shop.row(id))?.quantity).toBe(9);
      for (const handle of [lock, resumed]) {
        expect(handle.remaining()).toBe(0);
        expect(handle.signal.reason).toMatchObject({ code: 'CLOSED', key: handle.key });
        await expect(handle.$transaction(() => 'late')).rejects.toBe(handle.signal.reason);
      }
      // It was lost to the resumed one before.
      await expect(other.$transaction(() => 'late')).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect([await inRedis(key), await inRedis(idle.key)]).toEqual([[], []]);
    },
  );

  test.each(Object.entries(WAYS))('%s is not for good: calls after it begin anew', async (_, close) => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client();
    const sell = () =>
      prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));
    await sell();
    await close(prisma);
    await close(prisma);
    await Promise.all([sell(), sell()]);
    expect((await shop.row(id))?.quantity).toBe(7);
    // Waiting works again, and so does renewal.
    const lock = await shop.client().prisma.$lock(key);
    const waiting = prisma.$lock(key, { leaseTime: 300 });
    const redis = shop.redis();
    await eventually('it waits', async () => (await redis.llen(`fenced-lock:{${key}}:queue`)) === 1);
    await lock.release();
    const again = await waiting;
    const inTime = new Promise((resolve) => setTimeout(resolve, 700));
    const lost = new Promise((resolve) => again.signal.addEventListener('abort', () => resolve('lost')));
    expect(await Promise.race([inTime, lost])).toBeUndefined();
    expect(await shop.client().prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: false });
    expect((await prisma.$locks.inspect(key)).token).toBe(again.token);
    await close(prisma);
  });

  test.each(Object.entries(WAYS))('%s resolves only when Redis has what it was given back', async (_, close) => {
    const { key } = await shop.product(10);
    const url = inject('redis').url as string;
    const { hostname: host, port } = new URL(url);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    const redis = new Redis(proxy.url(url));
    redis.on('error', () => {});
    shop.closeLater(() => redis.disconnect());
    shop.closeLater(() => proxy.close());
    const { prisma } = shop.client({ redis });
    await prisma.$lock(key);
    const bystander = shop.redis();
    await bystander.ping();
    proxy.latency(300, 'toServer');
    await close(prisma);
    expect(await bystander.keys(`*${key}*`)).toEqual([]);
  });
});
