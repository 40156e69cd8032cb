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

  test.each([
    ['commit', 4, 'resolves all the same, because it has committed'],
    ['before commit', 5, 'rejects, and nothing was written'],
  ] as const)('a connection that breaks at: %s leaves %i, and the call %s', async (at, left, _) => {
    const line = await lines();
    const { id, key } = await shop.product(5);
    const prisma = on(line);
    const dropped = line.dropConnection({ at });
    const call = prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 4 } }));
    if (at === 'commit') await call;
    else await expect(call).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    await dropped;
    expect((await shop.row(id))?.quantity).toBe(left);
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

  test('a lease that is lost: a call on the client of its holder waits, and one elsewhere needs no renewal', async () => {
    const line = await lines();
    const { id, key } = await shop.product(5);
    // Its next renewal is beyond the wait time of the contender.
    const [holder, contender] = [on(line, { leaseTime: 60_000 }), shop.client().prisma];
    const [inside, goOn] = [gate(), gate()];
    const first = holder.$withLock(key, async (tx) => {
      const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
      inside.open();
      await goOn.opened;
      await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
    });
    const lost = expect(first).rejects.toThrow();
    await inside.opened;
    await line.loseLease(key);
    expect(await holder.$tryWithLock(key, () => 'mine')).toEqual({ acquired: false });
    await contender.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));
    goOn.open();
    await lost;
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

  test('a frozen holder: its transaction is ended at about its lease time, and the next one gets the key', async () => {
    const line = await lines();
    const { id, key } = await shop.product(5);
    const [holder, contender] = [on(line, { leaseTime: 1_000 }), shop.client().prisma];
    const inside = gate();
    const frozen = holder.$withLock(key, async (tx) => {
      const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
      line.freezeHolder();
      inside.open();
      await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
    });
    const outcome = frozen.catch((error: { code?: string }) => error.code ?? 'rejected');
    await inside.opened;
    await contender.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));
    line.thawHolder();
    expect(await outcome).toEqual(expect.any(String));
    expect((await shop.row(id))?.quantity).toBe(4);
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
      await expect(dropped).rejects.toThrow(`at: '${at}' }) has seen no COMMIT. The lines are closed.`);
      await expect(dropped).rejects.toThrow('rolled back');
    },
  );

  test('lines that no client uses: a COMMIT is not waited for, and `now` breaks nothing', async () => {
    const line = await lines();
    await expect(line.dropConnection({ at: 'commit' })).rejects.toThrow(/seen no COMMIT.*`lines\.databaseUrl`/);
    await expect(line.dropConnection({ at: 'now' })).rejects.toThrow(/`lines\.databaseUrl`/);
    // Nobody awaits it: no error of its own.
    void line.dropConnection({ at: 'commit' });
    await line.close();
  });

  test('a lease that nobody has cannot be lost, and the error names the prefix', async () => {
    const line = await lines();
    const { key } = await shop.product(1);
    await expect(line.loseLease(key)).rejects.toBeInstanceOf(FaultMissed);
    await expect(line.loseLease(key)).rejects.toThrow(new RegExp(`${key}.*keyPrefix.*"fenced-lock:"`));
  });

  test('leases with another prefix are not found, and the errors name theirs', async () => {
    const servers = { databaseUrl: inject('postgres').app, redisUrl: `${inject('redis').url}?keyPrefix=alien:` };
    const line = await faultLines(servers);
    closing.push(() => line.close());
    const redis = new Redis(line.redisUrl);
    closing.push(() => redis.disconnect());
    await line.flushRedis(); // there is nothing: no error
    await redis.set('shop:{stock:1}:lease', '1');
    for (const fault of [() => line.flushRedis(), () => line.loseLease('stock:1')]) {
      await expect(fault()).rejects.toThrow(/"fenced-lock:".*leases with "shop:".*faultLines\(servers, \{ keyPrefix/);
    }
    const right = await faultLines(servers, { keyPrefix: 'shop:' });
    closing.push(() => right.close());
    await right.loseLease('stock:1');
    expect(await redis.exists('shop:{stock:1}:lease')).toBe(0);
  });

  test('a child process stands still, and goes on', async () => {
    const line = await lines();
    const child = fork('-e', ['setInterval(() => {}, 1000)'], { execArgv: [] });
    closing.push(() => child.kill('SIGKILL'));
    const state = () => /^\d+ \(.*\) (\w)/.exec(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))?.[1];
    const listeners = child.listenerCount('exit');
    line.freezeHolder(child);
    await eventually('it stands still', async () => state() === 'T');
    // Guarded once, until it goes on or ends.
    line.freezeHolder(child);
    expect(child.listenerCount('exit')).toBe(listeners + 1);
    line.thawHolder(child);
    await eventually('it goes on', async () => state() !== 'T');
    expect(child.listenerCount('exit')).toBe(listeners);
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
