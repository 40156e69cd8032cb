import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { fencedLock, LockTimeoutError } from '../../src/index.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, Shop } from '../support/shop.js';

/** Longer than a transaction that was begun ahead waits for its lease; ms. */
const BLOCKED = 30;
const TIMES = 40;

describeWithShop('a call that does not wait', () => {
  const shop = new Shop();

  test('has a free key, also where its event loop stood still and its first transaction was given up', async () => {
    const { prisma } = shop.client();
    /** Whether it had the key each time. */
    const always = async () => {
      for (let time = 0; time < TIMES; time++) {
        const tried = prisma.$tryWithLock(`free:${randomUUID()}`, () => time);
        for (const until = performance.now() + BLOCKED; performance.now() < until; );
        if (!(await tried).acquired) return false;
      }
      return true;
    };
    // On a busy machine that transaction may last longer than such a call waits for its end.
    for (let tries = 1; !(await always()); tries++) expect(tries).toBeLessThan(5);
  });

  test('has a free key where Redis is farther than its first transaction lives, and Postgres far away', async () => {
    const postgres = new URL(inject('postgres').app);
    const store = new URL(inject('redis').url as string);
    const [toPostgres, toRedis] = await Promise.all(
      [postgres, store].map(({ hostname: host, port }) => startFaultProxy({ host, port: Number(port) })),
    );
    shop.closeLater(() => Promise.all([toPostgres?.close(), toRedis?.close()]));
    const redis = new Redis(toRedis?.url(store.href) as string);
    shop.closeLater(() => redis.disconnect());
    const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: toPostgres?.url(postgres.href) }) });
    shop.closeLater(() => client.$disconnect());
    const prisma = client.$extends(fencedLock({ redis, rescue: new PrismaPg({ connectionString: postgres.href }) }));
    // Its connections are there, so that each transaction takes as long as the others.
    await Promise.all(
      Array.from({ length: 4 }, () => prisma.$withLock(`warm:${randomUUID()}`, (tx) => tx.stock.count())),
    );
    toPostgres?.latency(200);
    toRedis?.latency(15);
    expect(await prisma.$tryWithLock(`far:${randomUUID()}`, () => 'in')).toEqual({ acquired: true, value: 'in' });
  });

  test("rejects with its signal's reason, also where that is the timeout of another lock", async () => {
    const { prisma } = shop.client();
    const reason = new LockTimeoutError('another', '1 ms');
    const tried = prisma.$tryWithLock(`free:${randomUUID()}`, () => 'in', { signal: AbortSignal.abort(reason) });
    await expect(tried).rejects.toBe(reason);
  });

  test('has the key of a call that another client of the process has just ended', async () => {
    const [holder, contender] = [shop.client().prisma, shop.client().prisma];
    await contender.$withLock(`free:${randomUUID()}`, () => {});
    for (let time = 0; time < TIMES; time++) {
      const key = `free:${randomUUID()}`;
      await holder.$withLock(key, () => {});
      expect(await contender.$tryWithLock(key, () => time)).toEqual({ acquired: true, value: time });
    }
  });

  test('waits for the first connection to Redis, and for a slow answer behind it', async () => {
    const url = new URL(inject('redis').url as string);
    const proxy = await startFaultProxy({ host: url.hostname, port: Number(url.port) });
    shop.closeLater(() => proxy.close());
    proxy.latency(100);
    await shop.redis().script('LOAD', scripts.acquire.lua);
    const redis = new Redis(proxy.url(url.href));
    shop.closeLater(() => redis.disconnect());
    // `INFO` and the look, one after the other.
    expect(await shop.client({ redis }).prisma.$tryWithLock(`free:${randomUUID()}`, () => 'in')).toEqual({
      acquired: true,
      value: 'in',
    });
  });
});
