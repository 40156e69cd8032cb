import { describe, expect, test } from 'vitest';
import { gate, Shop, withoutRedis } from '../support/shop.js';

describe.skipIf(withoutRedis)('G4: a waiting caller costs nothing', () => {
  const shop = new Shop();

  test('300 waiters of one client take no connection of its pool', async () => {
    const { id, key } = await shop.product(301);
    const application_name = `waiters ${id}`;
    const { prisma, plain } = shop.client({ pool: { max: 2, application_name } });
    const inside = gate();
    const goOn = gate();
    const sell = (afterRead: () => Promise<void>) =>
      prisma.$withLock(key, async (tx) => {
        const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
        await afterRead();
        await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
      });
    const held = sell(async () => {
      inside.open();
      await goOn.opened;
    });
    await inside.opened;
    const waiters = Array.from({ length: 300 }, () => sell(async () => {}));

    // The second and last connection is free for a bystander, again and again.
    for (let request = 0; request < 20; request++) await plain.stock.count();
    const { rows } = await shop.admin.query(
      `SELECT count(*) FILTER (WHERE state LIKE 'idle in transaction%')::int AS working, count(*)::int AS all
       FROM pg_stat_activity WHERE application_name = $1`,
      [application_name],
    );
    expect(rows).toEqual([{ working: 1, all: 2 }]);

    goOn.open();
    await Promise.all([held, ...waiters]);
    expect((await shop.row(id))?.quantity).toBe(0);
  });
});
