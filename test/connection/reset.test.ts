import { expect, inject, test } from 'vitest';
import { proxied } from '../support/proxied.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a connection of the pool that was reset on its way, unnoticed', () => {
  const shop = new Shop();

  test('costs a lock nothing: its transaction begins on another one', async () => {
    const { app } = inject('postgres');
    const { prisma, proxy } = await proxied(shop, app, { pool: { max: 1 } });
    const { key } = await shop.product(1);
    const lock = await prisma.$lock(key);
    const pid = () => lock.$transaction((tx) => tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`);
    const [before] = await pid();
    let cuts = 0;
    // As by something on the way that has forgotten the connection: nobody knows until something is sent.
    proxy.onData('toServer', () => (cuts++ === 0 ? 'cut' : 'forward'));
    const [after] = await pid();
    await lock.release();
    expect(after.pid).not.toBe(before.pid);
  });
});
