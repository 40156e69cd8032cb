import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { inject } from 'vitest';
import { type FaultProxy, startFaultProxy } from './fault-proxy.js';
import type { Shop, ShopOptions } from './shop.js';

export function proxyTo(url: string): Promise<FaultProxy> {
  const { hostname: host, port } = new URL(url);
  return startFaultProxy({ host, port: Number(port) });
}

/** A client whose connections to `url` go through a proxy; its rescue connection goes past that, to `rescue`. */
export async function proxied(shop: Shop, url: string, { pool, ...options }: ShopOptions = {}, rescue = url) {
  const proxy = await proxyTo(url);
  const client = shop.client({
    rescue: new PrismaPg({ connectionString: rescue }),
    ...options,
    pool: { connectionString: proxy.url(url), ...pool },
  });
  // Before the client, which would wait for its hung connections.
  shop.closeLater(() => proxy.close());
  return { proxy, ...client };
}

/** A client whose connections to the shared Redis go through a proxy. */
export async function redisProxied(shop: Shop, options: ShopOptions = {}) {
  const url = inject('redis').url as string;
  const proxy = await proxyTo(url);
  const redis = new Redis(proxy.url(url));
  redis.on('error', () => {});
  const client = shop.client({ redis, ...options });
  shop.closeLater(() => redis.disconnect());
  shop.closeLater(() => proxy.close());
  return { proxy, redis, ...client };
}
