import { setTimeout as pause } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
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
});
