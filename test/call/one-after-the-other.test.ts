import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

describeWithShop('calls of one process, one right after the other', () => {
  const shop = new Shop();

  /** What Redis has of a key. */
  const inRedis = (key: string) => shop.redis().keys(`*${key}*`);
  const sellOne = (prisma: ShopClient, { id, key }: { id: number; key: string }) =>
    prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));

  test.each<[string, (prisma: ShopClient) => Promise<unknown>]>([
    ['$disconnect', (prisma) => prisma.$disconnect()],
    ['$locks.close', (prisma) => prisma.$locks.close()],
  ])('leave nothing in Redis when %s is called right behind the last', async (_, close) => {
    const { prisma } = shop.client();
    const product = await shop.product(10);
    for (let call = 0; call < 10; call++) await sellOne(prisma, product);
    await close(prisma);
    expect(await inRedis(product.key)).toEqual([]);
  });

  test('leave nothing in Redis when the process exits right behind the last', async () => {
    const { key } = await shop.product(10);
    const args = [inject('postgres').app, inject('redis').url as string, key];
    const worker = startWorker(new URL('./quitter.worker.ts', import.meta.url), args);
    shop.closeLater(() => worker.stop());
    const end = await worker.exited;
    expect(end, worker.output).toEqual({ code: 7, signal: null });
    // Long before the lease would have ended by itself.
    const since = performance.now();
    await eventually('it is given back', async () => (await inRedis(key)).length === 0);
    expect(performance.now() - since).toBeLessThan(5_000);
  });

  test('let an operator take the key in between, and the next one gets it anew', async () => {
    const { prisma } = shop.client();
    const product = await shop.product(10);
    const tokens: bigint[] = [];
    for (let call = 0; call < 10; call++) {
      tokens.push(await prisma.$withLock(product.key, (_, { token }) => token));
      if (call % 3 === 2) await prisma.$locks.forceRelease(product.key);
    }
    expect(tokens).toEqual(tokens.toSorted((one, other) => (one < other ? -1 : 1)));
    await eventually('nothing is left', async () => (await inRedis(product.key)).length === 0);
  });
});
