import { randomUUID } from 'node:crypto';
import { expect, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.js';
import type { Shop, ShopOptions } from '../support/shop.js';

/** A client whose sessions are known by their name. */
export function named(shop: Shop, options: ShopOptions = {}) {
  const application_name = `caller ${randomUUID()}`.slice(0, 60);
  const { prisma } = shop.client({ ...options, pool: { ...options.pool, application_name } });
  const waiting = async () => {
    const { rowCount } = await shop.admin.query(
      `SELECT FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'
       AND position('fenced_lock.admit(' IN query) > 0`,
      [application_name],
    );
    return rowCount as number;
  };
  const waits = (calls = 1) => eventually(`${calls} wait in Postgres`, async () => (await waiting()) === calls);
  return { prisma, waiting, waits };
}

/** Has the rows of these keys until the test is over, and is nobody whom the application may end. */
export async function blockRows(shop: Shop, ...keys: string[]): Promise<() => Promise<void>> {
  const blocker = await shop.admin.connect();
  await blocker.query('BEGIN');
  const { rowCount } = await blocker.query('SELECT FROM fenced_lock.admission WHERE key = ANY ($1) FOR UPDATE', [keys]);
  expect(rowCount).toBe(keys.length);
  let isBlocked = true;
  const letGo = async () => {
    if (!isBlocked) return;
    isBlocked = false;
    await blocker.query('ROLLBACK');
    blocker.release();
  };
  onTestFinished(letGo);
  return letGo;
}

/**
 * Somebody has tried four times to be admitted. The first try may have been sent ahead of the lease, and looks for nobody; nor
 * does the first that waits for the key's row. So a try is over that would have ended who is in its way.
 */
export const triedInVain = (shop: Shop) => shop.blockedAgain('fenced_lock.admit', 4);

/** Somebody who waits for an admission has looked for whoever is in its way, and has ended those that it may end. */
export const lookedForBlockers = (shop: Shop) => shop.answered('pg_blocking_pids');
