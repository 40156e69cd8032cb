import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a handle that is resumed while Redis does not answer', () => {
  const shop = new Shop();

  async function throughProxy() {
    const url = inject('redis').url as string;
    const { hostname: host, port } = new URL(url);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    const redis = new Redis(proxy.url(url));
    redis.on('error', () => {});
    shop.closeLater(() => redis.disconnect());
    shop.closeLater(() => proxy.close());
    return { proxy, prisma: shop.client({ redis, commandTimeout: 500 }).prisma };
  }

  test('stays with the old one, and can be resumed later, when the wait time ends before', async () => {
    const { key } = await shop.product(1);
    const lock = await shop.client().prisma.$lock(key);
    const successor = await throughProxy();
    await successor.prisma.$locks.inspect(key);
    successor.proxy.silence();
    const resuming = successor.prisma.$resumeLock(lock.toJSON(), { waitTime: 300 });
    await expect(resuming).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', key });
    expect(await lock.$transaction(() => 'still in')).toBe('still in');
    const later = await shop.client().prisma.$resumeLock(lock.toJSON());
    expect(await later.$transaction(() => 'in')).toBe('in');
    await later.release();
  });
});

describeWithShop('one signal for all calls', () => {
  const shop = new Shop();

  test('brings no warning of a leak, and ends them all', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const warnings: Error[] = [];
    const heard = (warning: Error) => void warnings.push(warning);
    process.on('warning', heard);
    const shutdown = new AbortController();
    const { signal } = shutdown;
    const inside = gate();
    const holder = prisma.$withLock(
      key,
      async (_, lock) => {
        inside.open();
        await new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
      },
      { signal },
    );
    await inside.opened;
    const waiting = Array.from({ length: 50 }, () => prisma.$withLock(key, () => 'in', { signal }));
    shutdown.abort(new Error('shutting down'));
    const ends = await Promise.allSettled([holder, ...waiting]);
    expect(ends.map((end) => end.status === 'rejected' && (end.reason as Error).message)).toEqual(
      Array.from({ length: 51 }, () => 'shutting down'),
    );
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', heard);
    expect(warnings).toEqual([]);
  });
});
