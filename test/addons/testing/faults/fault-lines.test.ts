import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { afterEach, expect, inject, test } from 'vitest';
import { type FaultLines, FaultMissed, faultLines } from '../../../../src/addons/testing/index.js';
import { fencedLock, type LockOptions } from '../../../../src/index.js';
import { PrismaClient } from '../../../generated/prisma/client.js';
import { eventually } from '../../../support/eventually.js';
import { describeWithShop, gate, Shop } from '../../../support/shop.js';

describeWithShop('lines that fail when a test says so', () => {
  const shop = new Shop();
  const closing: Array<() => unknown> = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function lines(): Promise<FaultLines> {
    const made = await faultLines({ databaseUrl: inject('postgres').app, redisUrl: inject('redis').url as string });
    closing.push(() => made.close());
    return made;
  }

  /** A client on these lines. */
  function on({ databaseUrl, redisUrl }: FaultLines, defaults: LockOptions = {}) {
    const redis = new Redis(redisUrl);
    redis.on('error', () => {});
    const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
    closing.push(() => redis.disconnect());
    closing.push(() => plain.$disconnect());
    const rescue = new PrismaPg({ connectionString: inject('postgres').app });
    return plain.$extends(fencedLock({ redis, defaults, rescue }));
  }

  test.each([
    ['databaseUrl', [{ redisUrl: 'redis://h' }]],
    ['redisUrl', [{ databaseUrl: 'postgresql://h/d', redisUrl: '' }]],
    ['databaseUrl', []],
    ['prefix', [{ databaseUrl: 'postgresql://h/d', redisUrl: 'redis://h' }, { prefix: 'a' }]],
  ])('refuse what is no URL, and an option that is not known: %s', async (option, given) => {
    const made = (faultLines as (...given: unknown[]) => Promise<unknown>)(...given);
    await expect(made).rejects.toMatchObject({ code: 'INVALID_OPTION', option });
  });

  test('a connection that breaks before COMMIT: the call rejects, and nothing was written', async () => {
    const line = await lines();
    const { id, key } = await shop.product(5);
    const dropped = line.dropConnection({ at: 'before commit' });
    const call = on(line).$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 4 } }));
    await expect(call).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    await dropped;
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  test('a lease that is lost: the next holder comes in, and no update is lost', async () => {
    const line = await lines();
    const { id, key } = await shop.product(5);
    const holder = on(line, { leaseTime: 600 });
    const [inside, goOn] = [gate(), gate()];
    const first = holder.$withLock(key, async (tx, { signal }) => {
      const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
      signal.addEventListener('abort', () => goOn.open());
      inside.open();
      await goOn.opened;
      await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
    });
    await inside.opened;
    await line.loseLease(key);
    await expect(first).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'gone' });
    await holder.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));
    expect((await shop.row(id))?.quantity).toBe(4);
  });

  test('a lease that is lost: a function that ends before the next renewal commits', async () => {
    const line = await lines();
    const { id, key } = await shop.product(5);
    await on(line, { leaseTime: 60_000 }).$withLock(key, async (tx) => {
      await line.loseLease(key);
      await tx.stock.update({ where: { id }, data: { quantity: 4 } });
    });
    expect((await shop.row(id))?.quantity).toBe(4);
  });

  test('a flush takes what these locks have in Redis, and nothing else', async () => {
    const line = await faultLines(
      { databaseUrl: inject('postgres').app, redisUrl: `${inject('redis').url}?keyPrefix=flushed:` },
      { keyPrefix: 'mine:' },
    );
    closing.push(() => line.close());
    const redis = new Redis(line.redisUrl);
    closing.push(() => redis.disconnect());
    await redis.mset('mine:{a}:lease', '1', 'other', '1');
    await line.flushRedis();
    expect(await redis.mget('mine:{a}:lease', 'other')).toEqual([null, '1']);
    await redis.del('other');
  });

  test.each(['commit', 'before commit'] as const)(
    'a COMMIT that has not come when the lines close: %s rejects',
    async (at) => {
      const line = await lines();
      const prisma = on(line);
      const dropped = line.dropConnection({ at });
      await expect(prisma.$withLock(at, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
      await line.close();
      await expect(dropped).rejects.toBeInstanceOf(FaultMissed);
      await expect(dropped).rejects.toThrow(`at: '${at}' }) has seen no COMMIT: its call was rolled back.`);
    },
  );

  test('faults that nothing can be done with reject, and say what to do', async () => {
    const line = await lines();
    const { key } = await shop.product(1);
    await expect(line.dropConnection({ at: 'now' })).rejects.toThrow(/`lines\.databaseUrl`/);
    const alien = await faultLines(line, { keyPrefix: 'alien:' });
    closing.push(() => alien.close());
    for (const fault of [line.loseLease(key), alien.flushRedis()]) {
      await expect(fault).rejects.toBeInstanceOf(FaultMissed);
      await expect(fault).rejects.toThrow(/keyPrefix.*faultLines\(servers, \{ keyPrefix/);
    }
    // Nobody awaits it: no error of its own.
    void line.dropConnection({ at: 'commit' });
    await line.close();
  });

  test('a child process stands still, and goes on at the end of the lines', async () => {
    const line = await lines();
    const child = fork('-e', ['setInterval(() => {}, 1000)'], { execArgv: [] });
    closing.push(() => child.kill('SIGKILL'));
    const state = () => /^\d+ \(.*\) (\w)/.exec(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))?.[1];
    line.freezeHolder(child);
    await eventually('it stands still', async () => state() === 'T');
    line.thawHolder(child);
    await eventually('it goes on', async () => state() !== 'T');
    line.freezeHolder(child);
    await line.close();
    await eventually('it goes on', async () => state() !== 'T');
  });

  test('connections break at once', async () => {
    const line = await lines();
    const { key } = await shop.product(5);
    const prisma = on(line);
    const inside = gate();
    const call = prisma.$withLock(key, async (tx) => {
      inside.open();
      await tx.$queryRaw`SELECT 1 FROM pg_sleep(20)`;
    });
    await inside.opened;
    await line.dropConnection({ at: 'now' });
    await expect(call).rejects.toThrow();
  });
});
