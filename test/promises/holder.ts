import { expect, inject, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.js';
import type { Shop } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

/** Of the holder; ms. */
export const LEASE = 2_000;

/**
 * A holder in a process of its own, to be frozen or killed: it has written its row and not committed, and is idle or
 * receives a large result.
 */
export async function startHolder(shop: Shop, postgres: string, how: 'idle' | 'receiving') {
  const product = await shop.product(10);
  // The key's row is there before, so that others can see whether it is held.
  await shop.client().prisma.$withLock(product.key, () => {});
  const args = [postgres, inject('redis').url as string, product.key, String(product.id), how, String(LEASE)];
  const worker = startWorker(new URL('./holder.worker.ts', import.meta.url), args);
  onTestFinished(async () => {
    await worker.stop();
  });
  await worker.next('inside');
  expect(await isOpen(shop, product.key)).toBe(true);
  if (how === 'receiving') {
    await eventually('the result is on its way', async () => {
      const { rowCount } = await shop.admin.query(
        "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT repeat(%'",
      );
      return rowCount === 1;
    });
  }
  return { worker, ...product };
}

/** Whether the key's row in Postgres is still held by a transaction. */
export async function isOpen(shop: Shop, key: string): Promise<boolean> {
  const { rowCount } = await shop.admin.query(
    'SELECT 1 FROM fenced_lock.admission WHERE key = $1 FOR UPDATE SKIP LOCKED',
    [key],
  );
  return rowCount === 0;
}
