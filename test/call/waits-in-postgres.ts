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

/** Somebody has waited for an admission, given it up as one does who finds the key's row taken, and tried again. */
export async function triedTwice(shop: Shop): Promise<void> {
  const attempts = new Set<string>();
  await eventually('it has tried again, twice', async () => {
    const { rows } = await shop.admin.query(
      `SELECT xact_start::text AS begun FROM pg_stat_activity
       WHERE wait_event_type = 'Lock' AND position('fenced_lock.admit' in query) > 0`,
    );
    for (const { begun } of rows as { begun: string }[]) attempts.add(begun);
    return attempts.size > 2;
  });
}
