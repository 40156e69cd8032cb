import { expect } from 'vitest';
import type { LockHandle, LockTx } from '../../src/index.js';
import { type Shop, type ShopClient, sale } from '../support/shop.js';

export type Handle = LockHandle<LockTx<ShopClient>>;

export const sellOne = (lock: Handle, id: number, afterRead?: () => unknown) => lock.$transaction(sale(id, afterRead));

/** What is registered for a key. */
export async function registered(shop: Shop, key: string) {
  const { rows } = await shop.admin.query('SELECT token, holder FROM fenced_lock.admission WHERE key = $1', [key]);
  const row = rows[0] as { token: string; holder: string } | undefined;
  return row && { token: BigInt(row.token), holder: row.holder };
}

/** Redis loses what it knows of a key, as by FLUSHALL, which would hurt the other suites. */
export async function forget(shop: Shop, key: string): Promise<void> {
  const redis = shop.redis();
  expect(await redis.del(await redis.keys(`*${key}*`))).toBeGreaterThan(0);
}
