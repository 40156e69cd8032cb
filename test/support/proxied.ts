import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import { startFaultProxy } from './fault-proxy.js';
import type { Shop } from './shop.js';

/** A client whose connections to `url` go through a proxy; its rescue connection goes past that, to `rescue`. */
export async function proxied(shop: Shop, url: string, pool: pg.PoolConfig = {}, rescue = url) {
  const { hostname: host, port } = new URL(url);
  const proxy = await startFaultProxy({ host, port: Number(port) });
  const connectionString = proxy.url(url);
  const client = shop.client({
    pool: { connectionString, ...pool },
    rescue: new PrismaPg({ connectionString: rescue }),
  });
  // Before the client, which would wait for its hung connections.
  shop.closeLater(() => proxy.close());
  return { proxy, ...client };
}
