import { PrismaPg } from '@prisma/adapter-pg';
import type { Redis } from 'ioredis';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';

/** Longer than any test may take: who waits for it fails. */
const PATIENT = { waitTime: 120_000 };

describeWithShop('a Redis client that was closed', () => {
  const shop = new Shop();

  const closed = (redis: Redis) => eventually('it has ended', async () => redis.status === 'end');

  const WAYS: Record<string, (redis: Redis) => unknown> = {
    disconnect: (redis) => redis.disconnect(),
    quit: (redis) => redis.quit(),
  };
  test.each(Object.entries(WAYS))('by %s: a call fails at once, says so, and does nothing', async (_, close) => {
    const { key } = await shop.product(10);
    const redis = shop.redis();
    const { prisma } = shop.client({ redis });
    const handle = await prisma.$lock(`${key} handle`);
    const state = handle.toJSON();
    await close(redis);
    await closed(redis);
    const unavailable = {
      code: 'LOCK_UNAVAILABLE',
      message: expect.stringMatching(/^The client given as `redis` was closed, so Redis was not asked .*`connect\(\)`/),
    };
    await expect(prisma.$withLock(key, () => 'in', PATIENT)).rejects.toMatchObject({ ...unavailable, key });
    await expect(prisma.$withLock([key, `${key} too`], () => 'in', PATIENT)).rejects.toMatchObject(unavailable);
    await expect(prisma.$lock(key, PATIENT)).rejects.toMatchObject(unavailable);
    await expect(prisma.$tryWithLock(key, () => 'in')).rejects.toMatchObject(unavailable);
    await expect(prisma.$resumeLock(state, PATIENT)).rejects.toMatchObject(unavailable);
    await handle.release();
  });

  test('in the middle of the waiting: who waits is refused, all of them', async () => {
    const { key } = await shop.product(10);
    // A foreign lease, which nobody renews: those who wait look again at its end.
    await shop.redis().set(`fenced-lock:{${key}}:lease`, 'somebody', 'PX', 2_000);
    const redis = shop.redis();
    const { prisma, events } = shop.client({ redis });
    const waiting = [1, 2, 3].map(() => prisma.$withLock(key, () => 'in', PATIENT));
    const refused = Promise.allSettled(waiting);
    await shop.queued(key);
    redis.disconnect();
    for (const each of await refused) expect(each).toMatchObject({ reason: { code: 'LOCK_UNAVAILABLE', key } });
    expect(events).toContainEqual(expect.objectContaining({ type: 'look-failed', key }));
  });
});

describeWithShop('a pool of pg that was ended', () => {
  const shop = new Shop();

  test('a call fails at once, says so, and gives its key back', async () => {
    const { key } = await shop.product(10);
    const pool = new pg.Pool({ connectionString: inject('postgres').app });
    const { prisma } = shop.client({ adapter: new PrismaPg(pool) });
    await prisma.$withLock(key, () => {});
    await pool.end();
    const unavailable = {
      code: 'LOCK_UNAVAILABLE',
      key,
      message: expect.stringMatching(/^The database client was closed, so Postgres was not asked .*end the pool/),
      cause: { message: expect.stringContaining('after calling end') },
    };
    await expect(prisma.$withLock(key, () => {}, PATIENT)).rejects.toMatchObject(unavailable);
    await expect(prisma.$lock(key, PATIENT)).rejects.toMatchObject(unavailable);
    await prisma.$disconnect();
    await expect(prisma.$withLock(key, () => {}, PATIENT)).rejects.toMatchObject(unavailable);
    expect(await shop.client().prisma.$withLock(key, () => 'in')).toBe('in');
  });
});
