import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { sellOne } from './handle-work.js';

describeWithShop('a handle that begins no transaction for days', () => {
  const shop = new Shop();

  /** As if its row had last been written two days ago. */
  async function age(...keys: string[]): Promise<void> {
    const { rowCount } = await shop.admin.query(
      "UPDATE fenced_lock.admission SET admitted_at = admitted_at - interval '2 days' WHERE key = ANY ($1)",
      [keys],
    );
    expect(rowCount).toBe(keys.length);
  }

  async function isYoung(key: string): Promise<boolean> {
    const { rowCount } = await shop.admin.query(
      "SELECT FROM fenced_lock.admission WHERE key = $1 AND admitted_at > now() - interval '1 hour'",
      [key],
    );
    return rowCount === 1;
  }

  test('keeps the rows of its keys from being collected as idle, and no others', async () => {
    const { prisma } = shop.client();
    const [one, two, stranger] = [await shop.product(10), await shop.product(10), await shop.product(10)];
    await prisma.$withLock(stranger.key, () => {});
    const lock = await prisma.$lock([one.key, two.key], { leaseTime: 2_000 });
    await age(one.key, two.key, stranger.key);
    for (const { key } of [one, two]) await eventually('its row is young', () => isYoung(key));
    // Nobody has it: it may go.
    expect(await isYoung(stranger.key)).toBe(false);
    await sellOne(lock, one.id);
    await lock.release();
  });
});
