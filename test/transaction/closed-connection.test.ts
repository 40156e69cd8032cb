import type { Socket } from 'node:net';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { PoollessPg } from '../support/poolless-pg.js';
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
    const connectionString = inject('postgres').app;
    const plain = new PrismaClient({ adapter: new PoollessPg({ connectionString }) });
    shop.closeLater(() => plain.$disconnect());
    const prisma = plain.$extends(fencedLock({ redis: shop.redis() }));
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

  /** A client with one connection, through a proxy, and whether it has noticed that this was closed. */
  async function proxied(rescue: (through: string, past: string) => string) {
    const { app } = inject('postgres');
    const { hostname: host, port } = new URL(app);
    const proxy = await startFaultProxy({ host, port: Number(port) });
    const through = proxy.url(app);
    const pool = new pg.Pool({ connectionString: through, max: 1 });
    pool.on('error', () => {});
    shop.closeLater(() => proxy.close());
    const connection = new Promise<Socket>((resolve) => {
      pool.on('connect', (client) =>
        resolve((client as unknown as { connection: { stream: Socket } }).connection.stream),
      );
    });
    const noticed = new Promise<void>((resolve) => {
      pool.on('connect', (client) => client.once('error', () => resolve()));
    });
    const options = { redis: shop.redis(), rescue: new PrismaPg({ connectionString: rescue(through, app) }) };
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool) }).$extends(fencedLock(options));
    shop.closeLater(() => pool.end());
    return { prisma, proxy, connection, noticed };
  }

  test('before COMMIT is sent, and Postgres is away: it is known to be rolled back', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy, noticed } = await proxied((through) => through);
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      await proxy.refuse();
      proxy.reset();
      await noticed;
    });
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', key, reason: 'connection' });
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
