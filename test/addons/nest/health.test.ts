import 'reflect-metadata';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { FencedLockHealthIndicator, FencedLockService } from '../../../src/addons/nest/index.js';
import { startFaultProxy } from '../../support/fault-proxy.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { listening } from './shop.js';

describeWithShop('the health of locks', () => {
  const shop = new Shop();

  test('is up in terminus, and 503 without Redis', async () => {
    const url = inject('redis').url as string;
    const { hostname: host, port } = new URL(url);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    const redis = new Redis(proxy.url(url), { maxRetriesPerRequest: 0, retryStrategy: () => 50 });
    redis.on('error', () => {});
    shop.closeLater(() => redis.disconnect());
    const { prisma } = shop.client({ redis, commandTimeout: 500 });
    const { get } = await listening(shop, { lock: { client: prisma } });
    const up = await get('health');
    expect([up.status, await up.json()]).toMatchObject([200, { status: 'ok', info: { locks: { status: 'up' } } }]);
    await proxy.close();
    const down = await get('health');
    expect(down.status).toBe(503);
    expect(await down.json()).toMatchObject({
      status: 'error',
      error: { locks: { status: 'down', code: 'LOCK_UNAVAILABLE' } },
    });
  });

  test('is down where Postgres cannot be asked, and tells no host of it', async () => {
    const { prisma } = shop.client({
      rescue: {
        provider: 'postgres',
        adapterName: 'none',
        connect: () => Promise.reject(new Error('no route to db.internal')),
      },
    });
    const health = await new FencedLockHealthIndicator(new FencedLockService(prisma)).isHealthy('stock locks');
    expect(health).toEqual({ 'stock locks': { status: 'down', code: 'POSTGRES' } });
  });

  test('is down where an answer takes too long', async () => {
    const never = { locks: { inspect: () => new Promise<never>(() => {}) } as never };
    const indicator = new FencedLockHealthIndicator(never);
    expect(await indicator.isHealthy('locks', { timeout: 20 })).toEqual({ locks: { status: 'down', code: 'TIMEOUT' } });
    await expect(indicator.isHealthy('locks', { timeout: Number.NaN })).rejects.toMatchObject({ option: 'timeout' });
  });
});
