import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a key in whose place in Redis somebody else has written', () => {
  const shop = new Shop();

  /** What stands in the way, by the name that it has. */
  const ALIENS: Record<string, (redis: Redis, names: { lease: string; queue: string }) => Promise<unknown>> = {
    'a list in the place of the lease': (redis, { lease }) => redis.rpush(lease, 'not ours'),
    'a megabyte in the place of the lease': (redis, { lease }) => redis.set(lease, 'a '.repeat(1 << 19)),
    'a string in the place of the queue': (redis, { queue }) => redis.set(queue, 'not ours'),
    'both, each of another type': (redis, { lease, queue }) =>
      Promise.all([redis.hset(lease, 'not', 'ours'), redis.zadd(queue, 1, 'not ours')]),
  };

  async function taken(put: (typeof ALIENS)[string]) {
    const keyPrefix = `${randomUUID()}:`;
    const { prisma } = shop.client({ keyPrefix });
    const { id, key } = await shop.product(10);
    await put(shop.redis(), { lease: `${keyPrefix}{${key}}:lease`, queue: `${keyPrefix}{${key}}:queue` });
    return { prisma, keyPrefix, id, key };
  }

  test.each(Object.entries(ALIENS))(
    '%s: is refused and listed, each with what is wrong, and is free again after forceRelease',
    async (_, put) => {
      const { prisma, keyPrefix, id, key } = await taken(put);
      // Who is alone in the line asks for the queue only when it waits.
      const lock = await prisma.$lock(key, { waitTime: 300 }).catch((error: unknown) => error);
      const call = prisma.$withLock(key, () => {}, { waitTime: 300 });
      const error = lock instanceof Error ? lock : await call.catch((error: unknown) => error);
      expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', key, message: expect.stringContaining('forceRelease') });
      await call.catch(() => {});
      const problem = expect.stringContaining('has a value that this package did not write');
      expect(await prisma.$locks.list()).toMatchObject([{ key, problem }]);
      expect(await prisma.$locks.inspect(key)).toMatchObject({ key, problem });
      expect(await prisma.$locks.forceRelease(key)).toBe(true);
      expect(await shop.redis().keys(`${keyPrefix}*`)).toEqual([]);
      const sold = await prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 9 } }));
      expect(sold.quantity).toBe(9);
    },
  );

  test('a holder that is there all the same keeps its lease when the queue is cleared by another name', async () => {
    const { prisma, keyPrefix, key } = await taken(async () => {});
    const lock = await prisma.$lock(key);
    await shop.redis().set(`${keyPrefix}{${key}}:queue`, 'not ours');
    const [holder] = lock.toJSON().holders;
    expect(await prisma.$locks.inspect(key)).toMatchObject({ holder, problem: expect.any(String) });
    expect(await prisma.$locks.forceRelease(key)).toBe(true);
    expect(await shop.redis().keys(`${keyPrefix}*`)).toEqual([]);
    await lock.release();
  });
});
