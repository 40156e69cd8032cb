import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { redisProxied } from '../support/proxied.js';
import { atWork, describeWithShop, gate, Shop, type ShopClient, sale } from '../support/shop.js';
import { sellOne } from './handle-work.js';
import { blockRows, named } from './waits-in-postgres.js';

/** Both ways to close the locks of a client. */
const WAYS: Record<string, (client: ShopClient) => Promise<void>> = {
  $disconnect: (client) => client.$disconnect(),
  '$locks.close': (client) => client.$locks.close(),
};

/** Longer than a test: whoever gets on did not get on because that was over. */
const PATIENT = { waitTime: 60_000 };
const codeOf = (call: Promise<unknown>) => call.catch((error: { code?: string }) => error.code ?? error);

describeWithShop('the end of a client', () => {
  const shop = new Shop();

  /** What Redis has of a key. */
  const inRedis = (key: string) => shop.redis().keys(`*${key}*`);

  test.each(Object.entries(WAYS))('%s turns away who waits, and lets the work that runs commit', async (_, close) => {
    const { id, key } = await shop.product(10);
    const elsewhere = await shop.product(10);
    const { prisma } = shop.client();
    const lock = await shop.client().prisma.$lock(elsewhere.key);
    const { held, goOn } = await atWork(prisma, key, sale(id));
    const waiters = [
      codeOf(prisma.$withLock(key, () => 'in')),
      codeOf(prisma.$lock(key)),
      codeOf(prisma.$withLock(elsewhere.key, () => 'in')),
      codeOf(prisma.$withLock([`${elsewhere.key} too`, elsewhere.key], () => 'in')),
    ];
    await shop.queued(elsewhere.key);
    const steps: string[] = [];
    const closed = close(prisma).then(() => steps.push('closed'));
    expect(await Promise.all(waiters)).toEqual(waiters.map(() => 'CLOSED'));
    expect(await codeOf(prisma.$withLock(`${key} new`, () => 'in'))).toBe('CLOSED');
    goOn();
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
      const [inside, goOn] = [gate(), gate()];
      const work = sellOne(lock, id, () => {
        inside.open();
        return goOn.opened;
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
    const sell = () => prisma.$withLock(key, sale(id));
    await sell();
    await close(prisma);
    await close(prisma);
    await Promise.all([sell(), sell()]);
    expect((await shop.row(id))?.quantity).toBe(7);
    // Waiting works again, and so does renewal.
    const lock = await shop.client().prisma.$lock(key);
    const waiting = prisma.$lock(key, { leaseTime: 300 });
    await shop.queued(key);
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
    const { prisma, proxy } = await redisProxied(shop);
    await prisma.$lock(key);
    const bystander = shop.redis();
    await bystander.ping();
    proxy.latency(300, 'toServer');
    await close(prisma);
    expect(await bystander.keys(`*${key}*`)).toEqual([]);
  });

  test.each(Object.entries(WAYS))(
    '%s turns away a call whose turn has come and that waits in Postgres: its function never begins',
    async (_, close) => {
      const { prisma, waits } = named(shop);
      const keys = Array.from({ length: 4 }, () => `turned away ${randomUUID()}`) as [string, string, string, string];
      for (const key of keys.slice(2)) await prisma.$withLock(key, () => {});
      const owner = shop.client().prisma;
      const [lock, other] = [await prisma.$lock(keys[0]), await owner.$lock(keys[1])];
      const letGo = await blockRows(shop, ...keys);
      const begun: string[] = [];
      const calls = [
        prisma.$withLock(keys[3], () => begun.push('a call'), PATIENT),
        prisma.$lock(keys[2], PATIENT),
        lock.$transaction(() => begun.push('the transaction of a handle'), PATIENT),
        prisma.$resumeLock(other.toJSON(), PATIENT),
      ].map(codeOf);
      await waits(4);
      await close(prisma);
      expect(await Promise.all(calls)).toEqual(calls.map(() => 'CLOSED'));
      await letGo();
      expect(begun).toEqual([]);
      // What was turned away has taken nothing from anybody.
      await other.$transaction(() => begun.push('the old handle'));
      expect(begun).toEqual(['the old handle']);
      await other.release();
    },
  );
});
