import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock, type LockTx } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { eventually } from '../support/eventually.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

type Tx = LockTx<ShopClient>;

describeWithShop('a transaction whose connection is closed while its function runs', () => {
  const shop = new Shop();

  /** Ends the session from outside, as a shutdown of the server does, then goes on. */
  async function endedBefore(tx: Tx, id: number): Promise<void> {
    const [session] = await tx.$queryRaw<Array<{ pid: number }>>`SELECT pg_backend_pid() AS pid`;
    await shop.admin.query('SELECT pg_terminate_backend($1, 5000)', [session?.pid]);
    await tx.stock.update({ where: { id }, data: { quantity: 5 } });
  }

  test('is said to be rolled back, with what Postgres said, and not by an error of the driver', async () => {
    const { id, key } = await shop.product(10);
    const held = shop.client().prisma.$withLock(key, (tx) => endedBefore(tx, id));
    const message = expect.stringMatching(/rolled back.*57P01/s);
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', key, message });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('by a time limit of Postgres, is told sooner than one that an operator may have ended, who takes the lease then', async () => {
    const { prisma } = shop.client();
    const order: string[] = [];
    const ended = await Promise.all(
      ['57P01', '25P03'].map(async (code) => {
        const { id, key } = await shop.product(10);
        const [closed, goOn] = [gate(), gate()];
        const held = prisma.$withLock(key, async (tx) => {
          const [session] = await tx.$queryRaw<Array<{ pid: number }>>`SELECT pg_backend_pid() AS pid`;
          if (code === '25P03') await tx.$executeRaw`SET LOCAL idle_in_transaction_session_timeout = 10`;
          else await shop.admin.query('SELECT pg_terminate_backend($1, 5000)', [session?.pid]);
          await eventually('the session is over', async () => {
            const { rowCount } = await shop.admin.query('SELECT FROM pg_stat_activity WHERE pid = $1', [session?.pid]);
            return rowCount === 0 || undefined;
          });
          closed.open();
          await goOn.opened;
          await tx.stock.update({ where: { id }, data: { quantity: 5 } });
        });
        held.catch(() => order.push(code));
        await closed.opened;
        return { code, held, goOn };
      }),
    );
    for (const { goOn } of ended) goOn.open();
    for (const { code, held } of ended) {
      await expect(held).rejects.toMatchObject({ reason: 'connection', message: expect.stringContaining(code) });
    }
    expect(order).toEqual(['25P03', '57P01']);
  });

  test('by a time limit while the function computes, is told as soon', async () => {
    const { prisma } = shop.client();
    const order: string[] = [];
    const { key } = await shop.product(10);
    const other = await shop.product(10);
    const failed = gate();
    const closed = prisma.$withLock(other.key, (tx) => endedBefore(tx, other.id).finally(failed.open));
    closed.catch(() => order.push('57P01'));
    const held = prisma.$withLock(key, async (tx) => {
      await failed.opened;
      // So that it would be the later one if both were told after the same time.
      await pause(200);
      await tx.$executeRaw`SET LOCAL idle_in_transaction_session_timeout = 10`;
      const until = performance.now() + 50;
      while (performance.now() < until);
    });
    held.catch(() => order.push('25P03'));
    await expect(held).rejects.toMatchObject({ reason: 'connection', message: expect.stringContaining('25P03') });
    await expect(closed).rejects.toMatchObject({ reason: 'connection' });
    expect(order).toEqual(['25P03', '57P01']);
  });

  test('rejects with the own error of the function, if it threw one', async () => {
    const { id, key } = await shop.product(10);
    const held = shop.client().prisma.$withLock(key, async (tx) => {
      await endedBefore(tx, id).catch(() => {
        throw new Error('sold out');
      });
    });
    await expect(held).rejects.toThrow('sold out');
    expect((await shop.row(id))?.quantity).toBe(10);
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

  test('for this side alone, before COMMIT is sent: its backend is ended before the call is told', async () => {
    const { id, key } = await shop.product(10);
    const { prisma, proxy, connection, noticed } = await proxied((_, past) => past);
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      // Postgres does not hear of the end.
      proxy.silence('toServer');
      (await connection).destroy(new Error('a NAT has forgotten it'));
      await noticed;
    });
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', key, reason: 'connection' });
    const { rows } = await shop.admin.query('SELECT quantity FROM "Stock" WHERE id = $1 FOR UPDATE NOWAIT', [id]);
    expect(rows).toEqual([{ quantity: 10 }]);
  });
});
