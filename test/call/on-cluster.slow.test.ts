import { expect, test } from 'vitest';
import { slotOf } from '../../src/redis/topology/slot.js';
import { connectTo } from '../support/redis-site.js';
import { type ClusterGroup, startCluster } from '../support/servers/index.js';
import { atWork, describeWithShop, Shop, type ShopClient, sale } from '../support/shop.js';
import { describeWithGroup } from '../support/site-suite.js';

describeWithShop('with a Cluster', () => {
  const shop = new Shop();

  describeWithGroup('of three masters', startCluster, (cluster) => {
    test('keys of several slots are had all, renewed, and passed on when they are given back', async () => {
      const products = await Promise.all(Array.from({ length: 6 }, () => shop.product(10)));
      const keys = products.map(({ key }) => key);
      expect(new Set(keys.map((key) => slotOf(`{${key}}`) >> 12)).size).toBeGreaterThan(1);
      const [holder, contender] = [client(cluster()), client(cluster())];
      const sell = async (tx: Pick<ShopClient, 'stock'>, { signal }: { readonly signal: AbortSignal }) => {
        signal.throwIfAborted();
        for (const { id } of products) await sale(id)(tx);
      };
      const { held, goOn } = await atWork(holder.prisma, keys, sell, { leaseTime: 6_000 });
      for (const key of keys) expect(await contender.prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: false });
      const next = contender.prisma.$withLock(keys, () => 'next');
      // Longer than the leases stand by themselves.
      await new Promise((resolve) => setTimeout(resolve, 7_000));
      goOn();
      await held;
      expect(await next).toBe('next');
      for (const { id } of products) expect((await shop.row(id))?.quantity).toBe(9);
      expect([...holder.events, ...contender.events]).toEqual([]);
    });
  });

  function client({ site }: ClusterGroup) {
    const { redis, close } = connectTo(site);
    shop.closeLater(close);
    return shop.client({ redis: redis as Exclude<typeof redis, unknown[]> });
  }
});
