import { expect, test } from 'vitest';
import { FenceWorld } from '../../support/fence-world.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { beginAgain } from './rows.js';

describeWithShop('a token that Postgres does not know as this transaction’s', () => {
  const world = new FenceWorld('fence_stale', 'prove', ['Member']);

  test('is superseded', async () => {
    await world.admin.query(beginAgain([]));
    const held = world.client().$withLock('stale', async (tx) => {
      await tx.$queryRaw`SELECT set_config('fenced_lock.token', '', true)`;
      await tx.member.update({ where: { id: 3 }, data: { value: 2 } });
    });
    await expect(held).rejects.toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded', model: 'Member' });
  });
});

describeWithShop('rows and JSON', () => {
  const shop = new Shop();

  test('the omit line of docs/guard.md leaves the fence, a bigint, out of what goes out as JSON', async () => {
    const { id, key } = await shop.product(4);
    const written = await shop
      .omitting()
      .$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 5 } }));
    expect(JSON.parse(JSON.stringify(written))).toMatchObject({ id, quantity: 5 });
    expect((await shop.row(id))?.fence).toBeGreaterThan(0n);
  });
});
