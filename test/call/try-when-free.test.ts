import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import * as scripts from '../../src/redis/scripts.generated.js';
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

  test('has the key of a call that another client of the process has just ended', async () => {
    const [holder, contender] = [shop.client().prisma, shop.client().prisma];
    await contender.$withLock(`free:${randomUUID()}`, () => {});
    for (let time = 0; time < TIMES; time++) {
      const [key, earlier] = [`free:${randomUUID()}`, `free:${randomUUID()}`];
      // A client that is in use sends its releases behind its callers.
      await holder.$withLock(earlier, () => {});
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
