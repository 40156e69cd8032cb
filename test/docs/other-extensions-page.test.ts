import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';
import { blocks, folderFor, ours } from './page.js';

/** The module that the page builds up. */
const MODULE = ours(blocks('docs/guides/other-extensions.md').join('\n')).concat(
  '\nexport { base, forTenant, lockForTenant, prisma, redis, sellUnderLock, sellWithoutLock };\n',
);

interface Page {
  readonly base: ShopClient;
  readonly prisma: ShopClient;
  readonly redis: { disconnect(): void };
  forTenant(tenant: string): ShopClient;
  lockForTenant<R>(tenant: string, key: string, fn: (tx: ShopClient) => Promise<R>): Promise<R>;
  sellUnderLock(id: number): Promise<unknown>;
  sellWithoutLock(id: number): Promise<unknown>;
}

describeWithShop('docs/guides/other-extensions.md', () => {
  const shop = new Shop();
  const { folder, remove } = folderFor('extensions');
  let page: Page;

  beforeAll(async () => {
    vi.stubEnv('DATABASE_URL', inject('postgres').app).stubEnv('REDIS_URL', inject('redis').url);
    writeFileSync(join(folder, 'page.ts'), MODULE);
    page = (await import(/* @vite-ignore */ join(folder, 'page.ts'))) as Page;
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await page?.prisma.$disconnect();
    page?.redis.disconnect();
    remove();
  });

  const order = async (stockId: number) =>
    await shop.client().plain.order.create({ data: { stockId, buyer: 'x', quantity: 1 } });
  const quantityOf = async (id: number) =>
    (await shop.admin.query('SELECT quantity FROM "Order" WHERE id = $1', [id])).rows[0].quantity;

  test('its soft delete is rolled back with the lock, and works without one', async () => {
    const { id: stockId, key } = await shop.product(10);
    const { id } = await order(stockId);
    const softly = page.prisma.$withLock(key, async (tx) => {
      await tx.order.delete({ where: { id } });
      expect(await tx.order.findMany({ where: { id } })).toEqual([]);
      throw new Error('no sale');
    });
    await expect(softly).rejects.toThrow('no sale');
    expect(await quantityOf(id)).toBe(1);
    await page.prisma.$withLock(key, (tx) => tx.order.delete({ where: { id } }));
    expect(await quantityOf(id)).toBe(0);
    const { id: other } = await order(stockId);
    await page.prisma.order.delete({ where: { id: other } });
    expect(await quantityOf(other)).toBe(0);
  });

  test('its lock for a tenant sets the variable for all of its function, and for nothing else', async () => {
    const { id, key } = await shop.product(10);
    const tenant = "SELECT current_setting('app.tenant', TRUE) AS tenant";
    await page.lockForTenant('acme', key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      expect(await tx.$queryRawUnsafe(tenant)).toEqual([{ tenant: 'acme' }]);
      expect(await tx.stock.findUniqueOrThrow({ where: { id } })).toMatchObject({ quantity: 5 });
    });
    expect(await page.prisma.$queryRawUnsafe(tenant)).not.toEqual([{ tenant: 'acme' }]);
    expect(await page.forTenant('acme').stock.findUniqueOrThrow({ where: { id } })).toMatchObject({ quantity: 5 });
  });

  test('its helper sells with a lock and without, by the computed field', async () => {
    const { id } = await shop.product(2);
    await page.sellUnderLock(id);
    await page.sellWithoutLock(id);
    await expect(page.sellUnderLock(id)).rejects.toThrow('sold out');
    expect((await shop.row(id))?.quantity).toBe(0);
  });
});
