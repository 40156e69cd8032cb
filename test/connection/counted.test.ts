import { PrismaPg } from '@prisma/adapter-pg';
import type pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { isPlainTransactionOpen } from '../../src/connection/pool.js';
import { eventually } from '../support/eventually.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

const shop = new Shop();

const clientOn = (adapter: PrismaPg): ShopClient => shop.client({ adapter }).prisma;

beforeEach(() => {
  expect(isPlainTransactionOpen()).toBe(false);
});

const ADAPTERS: Record<string, (pool: pg.Pool) => PrismaPg> = {
  'a pool of pg': (pool) => new PrismaPg(pool),
  'an adapter without a pool of pg': (pool) => new PoollessPg(pool),
};
for (const [name, adapter] of Object.entries(ADAPTERS)) {
  describeWithShop(`on ${name} a plain transaction counts as open`, () => {
    const ENDS: Record<string, (prisma: ShopClient) => Promise<unknown>> = {
      'it commits': async (prisma) => {
        const seen = await prisma.$transaction(async (tx) => {
          await tx.stock.count();
          return isPlainTransactionOpen();
        });
        expect(seen).toBe(true);
      },
      'its function throws': async (prisma) => {
        const thrown = prisma.$transaction(async () => {
          throw new Error(`open: ${isPlainTransactionOpen()}`);
        });
        await expect(thrown).rejects.toThrow('open: true');
      },
      'its time is over': async (prisma) => {
        const [begun, late] = [gate(), gate()];
        const work = () => {
          begun.open();
          return late.opened;
        };
        const slow = prisma.$transaction(work, { timeout: 20 });
        await begun.opened;
        await eventually('its time is over', async () => !isPlainTransactionOpen());
        late.open();
        await expect(slow).rejects.toMatchObject({ code: 'P2028' });
      },
      'its session is ended': async (prisma) => {
        const ended = prisma.$transaction((tx) => tx.$queryRaw`SELECT pg_terminate_backend(pg_backend_pid())`);
        await expect(ended).rejects.toThrow();
      },
    };

    test.each(Object.entries(ENDS))('until %s', async (_, end) => {
      await end(clientOn(adapter(shop.pool())));
      expect(isPlainTransactionOpen()).toBe(false);
    });

    test('but not if it gets no connection, and not longer than until one is back that came too late', async () => {
      const pool = shop.pool({ max: 1 });
      const bystander = await pool.connect();
      const late = clientOn(adapter(pool)).$transaction((tx) => tx.stock.count(), { maxWait: 20 });
      await expect(late).rejects.toMatchObject({ code: 'P2028' });
      bystander.release();
      await eventually('its connection is back', async () => pool.idleCount === 1 && !isPlainTransactionOpen());
    });

    test('but not the one of a lock, nor a single operation', async () => {
      const prisma = clientOn(adapter(shop.pool()));
      const { key } = await shop.product(1);
      const seen = await prisma.$withLock(key, async (tx) => {
        await tx.stock.count();
        return isPlainTransactionOpen();
      });
      const single = prisma.stock.count().then(() => isPlainTransactionOpen());
      expect([seen, isPlainTransactionOpen(), await single]).toEqual([false, false, false]);
    });
  });
}
