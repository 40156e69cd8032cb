import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { beforeEach, expect, inject, test, vi } from 'vitest';
import { isPlainTransactionOpen, plainTransactionBegun } from '../../src/base/plain-transactions.js';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { eventually } from '../support/eventually.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

// The count is one of the process: with modules of its own, this file has that to itself.
vi.mock('../../src/base/plain-transactions.js', { spy: true });

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

const none = () => eventually('no transaction is open any more', async () => !isPlainTransactionOpen());
const countedSince = () => vi.mocked(plainTransactionBegun).mock.calls.length;
beforeEach(() => {
  expect(isPlainTransactionOpen()).toBe(false);
  vi.mocked(plainTransactionBegun).mockClear();
});

describeWithShop('a plain transaction counts as open', () => {
  type Pool = (config?: pg.PoolConfig) => pg.Pool;
  type Adapter = (pool: pg.Pool) => PrismaPg;
  const ADAPTERS: [string, Adapter][] = [
    ['a pool of pg', (pool) => new PrismaPg(pool)],
    ['an adapter without a pool of pg', (pool) => new PoollessPg(pool)],
  ];

  const ENDS: Record<string, (prisma: ShopClient, pool: Pool, adapter: Adapter) => Promise<unknown>> = {
    'it commits': async (prisma) => {
      const seen = await prisma.$transaction(async (tx) => {
        await tx.stock.count();
        return isPlainTransactionOpen();
      });
      expect(seen).toBe(true);
    },
    'its function throws': async (prisma) => {
      const thrown = prisma.$transaction(async (tx) => {
        await tx.stock.count();
        throw new Error(`open: ${isPlainTransactionOpen()}`);
      });
      await expect(thrown).rejects.toThrow('open: true');
    },
    'a statement of it fails': async (prisma) => {
      await expect(prisma.$transaction((tx) => tx.$queryRaw`SELECT 1 / 0`)).rejects.toThrow();
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
      const slow = prisma.$transaction(
        () => {
          begun.open();
          return late.opened;
        },
        { timeout: 20 },
      );
      await begun.opened;
      await none();
      late.open();
      await expect(slow).rejects.toMatchObject({ code: 'P2028' });
    },
    'its session is ended': async (prisma) => {
      const ended = prisma.$transaction(async (tx) => {
        const [{ pid }] = await tx.$queryRaw<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
        await shop.admin.query('SELECT pg_terminate_backend($1)', [pid]);
        await eventually('it is noticed', () =>
          tx.$queryRaw`SELECT 1`.then(
            () => false,
            () => true,
          ),
        );
      });
      await expect(ended).rejects.toThrow();
    },
    'all operations of a list have run': async (prisma) => {
      await prisma.$transaction([prisma.stock.count(), prisma.order.count()]);
    },
  };

  test.each(ADAPTERS.flatMap(([name, adapter]) => Object.keys(ENDS).map((end) => [end, name, adapter] as const)))(
    'until %s: on %s',
    async (end, _, adapter) => {
      const prisma = clientOn(adapter(poolOf()));
      await ENDS[end]?.(prisma, poolOf, adapter);
      expect(isPlainTransactionOpen()).toBe(false);
      expect(countedSince()).toBe(1);
    },
  );

  test.each(ADAPTERS)('but not if its BEGIN fails: on %s', async (_, adapter) => {
    const pool = poolOf();
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (config: object) => unknown;
      client.query = ((config: { text: string }) =>
        query(config.text === 'BEGIN' ? { text: 'BEGIN ISOLATION LEVEL NONE' } : config)) as never;
    });
    const prisma = clientOn(adapter(pool));
    let ran = false;
    const failing = prisma.$transaction(async () => {
      ran = true;
    });
    await expect(failing).rejects.toThrow();
    expect(ran).toBe(false);
    expect(isPlainTransactionOpen()).toBe(false);
  });

  test.each(ADAPTERS)('but not if it gets no connection: on %s', async (_, adapter) => {
    const nowhere = clientOn(adapter(poolOf({ connectionString: 'postgres://nobody@127.0.0.1:1/nothing' })));
    await expect(nowhere.$transaction((tx) => tx.stock.count())).rejects.toThrow();
    const pool = poolOf({ max: 1 });
    const bystander = await pool.connect();
    pool.options.connectionTimeoutMillis = 20;
    await expect(clientOn(adapter(pool)).$transaction((tx) => tx.stock.count())).rejects.toThrow();
    bystander.release();
    expect(isPlainTransactionOpen()).toBe(false);
    expect(countedSince()).toBe(0);
  });

  test.each(ADAPTERS)(
    'no longer than until its connection is back, if that came too late: on %s',
    async (_, adapter) => {
      const pool = poolOf({ max: 1 });
      const bystander = await pool.connect();
      const late = clientOn(adapter(pool)).$transaction((tx) => tx.stock.count(), { maxWait: 20 });
      await expect(late).rejects.toMatchObject({ code: 'P2028' });
      bystander.release();
      await eventually('its connection is back', async () => countedSince() === 1 && pool.idleCount === 1);
      await none();
    },
  );

  test.each(ADAPTERS)('and each one of several: on %s', async (_, adapter) => {
    const prisma = clientOn(adapter(poolOf()));
    const [first, second] = [gate(), gate()];
    const begun = [gate(), gate()];
    const hold = (index: number, end: Promise<void>) =>
      prisma.$transaction(() => {
        begun[index]?.open();
        return end;
      });
    const held = [hold(0, first.opened), hold(1, second.opened)];
    await Promise.all(begun.map(({ opened }) => opened));
    first.open();
    await held[0];
    expect(isPlainTransactionOpen()).toBe(true);
    second.open();
    await held[1];
    expect(isPlainTransactionOpen()).toBe(false);
    expect(countedSince()).toBe(2);
  });

  test.each(ADAPTERS)('but not the one of a lock, nor a single operation: on %s', async (_, adapter) => {
    const prisma = clientOn(adapter(poolOf()));
    const { key } = await shop.product(1);
    const seen = await prisma.$withLock(key, async (tx) => {
      await tx.stock.count();
      return isPlainTransactionOpen();
    });
    await prisma.stock.count();
    await prisma.$queryRaw`SELECT 1`;
    expect([seen, countedSince()]).toEqual([false, 0]);
  });
});

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
  async function fenced(): Promise<pg.Pool> {
    const pool = poolOf({ max: 1 });
    await clientOn(new PrismaPg(pool)).stock.count();
    return pool;
  }

  test('counts as a transaction until it is given back, each time', async () => {
    const pool = await fenced();
    for (let time = 0; time < 2; time++) {
      const client = await pool.connect();
      await client.query('SELECT 1');
      const isOpen = isPlainTransactionOpen();
      client.release();
      expect([isOpen, isPlainTransactionOpen()]).toEqual([true, false]);
    }
  });

  test('goes back only once, as without a lock, and counts once', async () => {
    const pool = await fenced();
    const client = await pool.connect();
    client.release();
    expect(() => client.release()).toThrow('already been released');
    const next = await pool.connect();
    const isOpen = isPlainTransactionOpen();
    next.release();
    expect(isOpen).toBe(true);
    expect(isPlainTransactionOpen()).toBe(false);
  });

  test.each([[true], [new Error('broken')]])('is closed if it is given back with %s', async (error) => {
    const pool = await fenced();
    const client = await pool.connect();
    client.release(error);
    expect(pool.totalCount).toBe(0);
    expect(isPlainTransactionOpen()).toBe(false);
  });

  test('is none for a query of the pool itself, and for a callback', async () => {
    const pool = await fenced();
    expect((await pool.query('SELECT 1 AS a')).rows).toEqual([{ a: 1 }]);
    const rows = await new Promise((resolve, reject) => {
      pool.connect((error, client, done) => {
        if (client === undefined) return reject(error);
        client.query('SELECT 2 AS a').then((result) => {
          done();
          resolve(result.rows);
        }, reject);
      });
    });
    expect(rows).toEqual([{ a: 2 }]);
    expect(countedSince()).toBe(0);
  });
});
