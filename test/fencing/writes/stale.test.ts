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

  test('a bigint is nothing for JSON, and the omit line of docs/guard.md leaves it out', async () => {
    const { id } = await shop.product(3);
    const { prisma } = shop.client();
    expect(() => JSON.stringify({ fence: 1n })).toThrow(TypeError);
    const { id: other, key } = await shop.product(4);
    const omitting = shop.omitting();
    const read = await omitting.stock.findUniqueOrThrow({ where: { id } });
    expect(JSON.parse(JSON.stringify(read))).toMatchObject({ id, quantity: 3 });
    const written = await omitting.$withLock(key, (tx) =>
      tx.stock.update({ where: { id: other }, data: { quantity: 5 } }),
    );
    expect(JSON.parse(JSON.stringify(written))).toMatchObject({ id: other, quantity: 5 });
    expect(written).not.toHaveProperty('fence');
    expect((await prisma.stock.findUniqueOrThrow({ where: { id: other } })).fence).toBeGreaterThan(0n);
  });
});
