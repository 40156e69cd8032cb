import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test, vi } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { eventually } from '../support/eventually.js';
import { proxied } from '../support/proxied.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('a transaction that is given up before it has begun', () => {
  const shop = new Shop();

  test('sends nothing on a connection that comes after `maxWait`', async () => {
    const { key } = await shop.product(10);
    const { prisma, plain, proxy } = await proxied(shop, inject('postgres').app, { max: 1 });
    const [begun, ends] = [gate(), gate()];
    const busy = plain.$transaction(async (tx) => {
      await tx.stock.count();
      begun.open();
      await ends.opened;
    });
    await begun.opened;
    await expect(prisma.$withLock(key, () => {}, { maxWait: 200 })).rejects.toMatchObject({ code: 'P2028' });
    let sent = '';
    proxy.onData('toServer', (data) => {
      sent += data.toString('latin1');
      return 'forward';
    });
    ends.open();
    await busy;
    // It comes behind whoever waited for the connection before.
    await plain.stock.count();
    expect(sent).not.toContain('fenced_lock');
    expect(sent).toContain('COMMIT');
  });

  test('behind a COMMIT, where the `$transaction` of the client throws: gives its connection back', async () => {
    const { id, key } = await shop.product(10);
    const connectionString = inject('postgres').app;
    const pool = new pg.Pool({ connectionString, max: 1 });
    shop.closeLater(() => pool.end());
    const plain = new PrismaClient({ adapter: new PrismaPg(pool) });
    let refuses = false;
    const { $transaction } = plain;
    Object.defineProperty(plain, '$transaction', {
      value(this: object, ...given: unknown[]) {
        if (refuses) throw new Error('circuit open');
        return Reflect.apply($transaction, this, given) as unknown;
      },
    });
    const prisma = plain.$extends(
      fencedLock({ redis: shop.redis(), rescue: new PrismaPg({ connectionString }) }),
    ) as ShopClient;
    // Which tables have a guard is known from now on, so no client is made anew for the writes.
    await prisma.$withLock(key, () => {});
    const [begun, ends] = [gate(), gate()];
    const first = prisma.$withLock(key, async (tx) => {
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      begun.open();
      await ends.opened;
    });
    await begun.opened;
    const next = prisma.$withLock(key, () => {});
    refuses = true;
    ends.open();
    await expect(next).rejects.toThrow('circuit open');
    await first;
    refuses = false;
    expect(await prisma.$withLock(key, (tx) => tx.stock.findUnique({ where: { id } }))).toMatchObject({ quantity: 9 });
    await pause(0);
    expect(pool.totalCount).toBe(1);
  });

  // Longer than a connection may be silent that is given up. Answers come meanwhile, and are read behind the timers.
  const BLOCKED = 2_700;

  test('keeps its connection where the event loop was blocked meanwhile', async () => {
    const pool = new pg.Pool({ connectionString: inject('postgres').app, max: 6 });
    shop.closeLater(() => pool.end());
    const removed = vi.fn();
    pool.on('remove', removed);
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool) }).$extends(fencedLock({ redis: shop.redis() }));
    const holder = shop.client().prisma;
    const keys = Array.from({ length: 6 }, () => randomUUID());
    await Promise.all(keys.map((key) => prisma.$withLock(key, (tx) => tx.$queryRaw`SELECT pg_sleep(0.2)::text`)));
    expect(pool.totalCount).toBeGreaterThan(1);
    const locks = await Promise.all(keys.map((key) => holder.$lock(key, { leaseTime: 60_000 })));
    const tries = keys.map((key) => prisma.$tryWithLock(key, () => 'in'));
    await Promise.race(tries);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCKED);
    expect(await Promise.all(tries)).toEqual(keys.map(() => ({ acquired: false })));
    await eventually('all are back', async () => pool.idleCount === pool.totalCount);
    expect(removed).not.toHaveBeenCalled();
    await Promise.all(locks.map((lock) => lock.release()));
  });
});
