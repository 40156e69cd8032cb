import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { beforeEach, expect, inject, test } from 'vitest';
import { isPlainTransactionOpen } from '../../src/connection/pool.js';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { eventually } from '../support/eventually.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

const { app: connectionString } = inject('postgres');
const shop = new Shop();

function poolOf(config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString, ...config });
  pool.on('error', () => {});
  shop.closeLater(() => pool.end());
  return pool;
}

function clientOn(adapter: PrismaPg): ShopClient {
  const plain = new PrismaClient({ adapter });
  shop.closeLater(() => plain.$disconnect());
  return plain.$extends(fencedLock({ redis: shop.redis() })) as ShopClient;
}

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
      'its COMMIT is refused': async (prisma) => {
        const once = crypto.randomUUID();
        const row = { key: once, token: 1n, before: 1, after: 1, worker: '', once };
        const twice = prisma.$transaction(async (tx) => {
          await tx.ledger.create({ data: row });
          await tx.ledger.create({ data: row });
        });
        await expect(twice).rejects.toThrow();
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
      'all operations of a list have run': async (prisma) => {
        await prisma.$transaction([prisma.stock.count(), prisma.order.count()]);
      },
    };

    test.each(Object.entries(ENDS))('until %s', async (_, end) => {
      await end(clientOn(adapter(poolOf())));
      expect(isPlainTransactionOpen()).toBe(false);
    });

    test('but not if it gets no connection, and not longer than until one is back that came too late', async () => {
      const pool = poolOf({ max: 1 });
      const bystander = await pool.connect();
      const late = clientOn(adapter(pool)).$transaction((tx) => tx.stock.count(), { maxWait: 20 });
      await expect(late).rejects.toMatchObject({ code: 'P2028' });
      bystander.release();
      await eventually('its connection is back', async () => pool.idleCount === 1 && !isPlainTransactionOpen());
    });

    test('but not the one of a lock, nor a single operation', async () => {
      const prisma = clientOn(adapter(poolOf()));
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

describeWithShop('a plain transaction that was begun before a lock fenced its pool', () => {
  test('is found all the same by a lock inside it', async () => {
    const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString }) });
    shop.closeLater(() => plain.$disconnect());
    // The client connects before the extension is applied.
    await plain.stock.count();
    const prisma = plain.$extends(fencedLock({ redis: shop.redis() })) as ShopClient;
    const [begun, goOn] = [gate(), gate()];
    const { key } = await shop.product(1);
    const outer = plain.$transaction(async () => {
      begun.open();
      await goOn.opened;
      return await prisma.$withLock(key, () => 'inside');
    });
    await begun.opened;
    expect(await prisma.$withLock(`${key} beside`, () => 'beside')).toBe('beside');
    goOn.open();
    await expect(outer).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
  });
});

describeWithShop('a connection that a user of plain pg has of a fenced pool', () => {
  test('counts as a transaction until it is given back, once, each time', async () => {
    const pool = poolOf({ max: 1 });
    await clientOn(new PrismaPg(pool)).stock.count();
    for (let time = 0; time < 2; time++) {
      const client = await pool.connect();
      const isOpen = isPlainTransactionOpen();
      client.release();
      expect([isOpen, isPlainTransactionOpen()]).toEqual([true, false]);
      expect(() => client.release()).toThrow('already been released');
    }
    const broken = await pool.connect();
    broken.release(true);
    expect([pool.totalCount, isPlainTransactionOpen()]).toEqual([0, false]);
  });
});
