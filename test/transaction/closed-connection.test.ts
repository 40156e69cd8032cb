import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { PoollessPg } from '../support/poolless-pg.js';
import { proxyTo } from '../support/proxied.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a transaction whose connection is closed while its function runs', () => {
  const shop = new Shop();

  test('by a time limit of Postgres, is told while the function still waits', async () => {
    const { key } = await shop.product(10);
    const held = shop.client().prisma.$withLock(key, async (tx) => {
      await tx.$executeRaw`SET LOCAL idle_in_transaction_session_timeout = 10`;
      await new Promise(() => {});
    });
    const message = expect.stringContaining('25P03');
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection', key, message });
  });

  test('is told at the next renewal, where the adapter has no pool of pg', async () => {
    const { prisma } = shop.client({ adapter: new PoollessPg({ connectionString: inject('postgres').app }) });
    const { key } = await shop.product(10);
    const inside = gate<number>();
    const held = prisma.$withLock(
      key,
      async (tx) => {
        const [session] = await tx.$queryRaw<Array<{ pid: number }>>`SELECT pg_backend_pid() AS pid`;
        inside.open(session?.pid as number);
        await new Promise(() => {});
      },
      { leaseTime: 1_500 },
    );
    held.catch(() => {});
    await shop.admin.query('SELECT pg_terminate_backend($1, 5000)', [await inside.opened]);
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection', key });
  });

  test('before COMMIT is sent, and Postgres is away: it is known to be rolled back', async () => {
    const { id, key } = await shop.product(10);
    const proxy = await proxyTo(inject('postgres').app);
    const through = { connectionString: proxy.url(inject('postgres').app), max: 1 };
    const pool = shop.pool(through);
    const noticed = gate();
    pool.on('connect', (client) => client.once('error', () => noticed.open()));
    const { prisma } = shop.client({ adapter: new PrismaPg(pool), rescue: new PrismaPg(through) });
    shop.closeLater(() => proxy.close());
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      await proxy.refuse();
      proxy.reset();
      await noticed.opened;
    });
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', key, reason: 'connection' });
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
