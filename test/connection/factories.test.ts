import { PrismaPg } from '@prisma/adapter-pg';
import oldPg from 'pg-8.16';
import { expect, inject, test } from 'vitest';
import { InsideTransactionError, StaleTokenError } from '../../src/index.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, Shop, type ShopClient, sale } from '../support/shop.js';

const { app: connectionString } = inject('postgres');
const shop = new Shop();

const clientOn = (adapter: PrismaPg) => shop.client({ adapter }).prisma;

/** Its work is in the transaction that was admitted, and that transaction is not the function's to end. */
async function expectFenced(prisma: ShopClient): Promise<void> {
  const { id, key } = await shop.product(10);
  const own = await prisma.$withLock(key, async (tx, lock) => {
    await sale(id)(tx);
    const [{ xid }] = await tx.$queryRaw<[{ xid: string }]>`SELECT pg_current_xact_id()::text AS xid`;
    return { token: String(lock.token), xid };
  });
  const { rows } = await shop.admin.query('SELECT token, xid FROM fenced_lock.admission WHERE key = $1', [key]);
  expect(rows).toEqual([own]);
  const ending = prisma.$withLock(key, async (tx) => {
    await tx.stock.update({ where: { id }, data: { quantity: 0 } });
    await tx.$executeRawUnsafe('COMMIT');
  });
  await expect(ending).rejects.toBeInstanceOf(InsideTransactionError);
  expect(await shop.row(id)).toEqual({ quantity: 9, fence: BigInt(own.token) });
}

/** Callers of one key at once: their turns follow each other. */
async function expectNoneLost(...buyers: ShopClient[]): Promise<void> {
  const { id, key } = await shop.product(12);
  const calls = Array.from({ length: 12 }, (_, index) => buyers[index % buyers.length]?.$withLock(key, sale(id)));
  await Promise.all(calls);
  expect((await shop.row(id))?.quantity).toBe(0);
}

describeWithShop('a transaction of a lock is fenced', () => {
  test.each<[string, () => PrismaPg]>([
    ['a url', () => new PrismaPg(connectionString)],
    ['a config', () => new PrismaPg({ connectionString, max: 2 })],
    ['a pool', () => new PrismaPg(shop.pool())],
    ['a pool of one connection', () => new PrismaPg(shop.pool({ max: 1 }))],
    ['a pool of the oldest pg that it takes', () => new PrismaPg(shop.pool({ Client: oldPg.Client }))],
  ])('on an adapter of %s', async (_, adapter) => {
    const prisma = clientOn(adapter());
    await expectFenced(prisma);
    await expectNoneLost(prisma);
  });

  test('where the extension is applied twice, one on the other or side by side', async () => {
    const plain = shop.unextended(new PrismaPg(connectionString));
    const once = shop.extend(plain);
    const twice = shop.extend(once);
    const beside = shop.extend(plain);
    for (const prisma of [once, twice, beside]) await expectFenced(prisma);
    await expectNoneLost(once, twice, beside);
  });

  test('after $disconnect, when the client connects again', async () => {
    const prisma = clientOn(new PrismaPg(connectionString));
    await expectFenced(prisma);
    await prisma.$disconnect();
    await expectFenced(prisma);
    await prisma.$disconnect();
    await prisma.$connect();
    await expectFenced(prisma);
  });

  test('on a client that was connected before the extension was applied, for all who call at once', async () => {
    let own: object | undefined;
    /** Its adapters are of a class of their own, as in a process that has fenced none before. */
    class OwnPg extends PrismaPg {
      override async connect() {
        const adapter = await super.connect();
        own ??= Object.create(Object.getPrototypeOf(adapter) as object) as object;
        return Object.setPrototypeOf(adapter, own) as typeof adapter;
      }
    }
    const plain = shop.unextended(new OwnPg(connectionString));
    await plain.$connect();
    await plain.stock.count();
    const prisma = shop.extend(plain);
    const keys = await Promise.all(Array.from({ length: 6 }, () => shop.product(1)));
    await Promise.all(keys.map(({ key }) => prisma.$withLock(key, (tx) => tx.stock.count())));
    await expectFenced(prisma);
    await expectNoneLost(prisma);
  });
});

describeWithShop('a pool that also serves users of plain pg', () => {
  const setting = "SELECT nullif(current_setting('fenced_lock.token', true), '') AS token";

  test('their transactions stay their own, beside a lock and inside its function', async () => {
    const pool = shop.pool();
    const prisma = clientOn(new PrismaPg(pool));
    const { id, key } = await shop.product(10);
    const transaction = async (quantity: number) => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        await client.query('UPDATE "Stock" SET quantity = $1 WHERE id = $2', [quantity, id]);
        const { rows } = await client.query(setting);
        await client.query('COMMIT');
        return rows;
      } finally {
        client.release();
      }
    };
    await expectFenced(prisma);
    expect(await transaction(8)).toEqual([{ token: null }]);
    const rolledBack = prisma.$withLock(key, async (tx) => {
      await tx.stock.count();
      expect(await transaction(7)).toEqual([{ token: null }]);
      expect((await pool.query(setting)).rows).toEqual([{ token: null }]);
      throw new Error('no sale');
    });
    await expect(rolledBack).rejects.toThrow('no sale');
    expect((await shop.row(id))?.quantity).toBe(7);
  });
});

describeWithShop('an adapter without a pool of pg', () => {
  const prisma = () => clientOn(new PoollessPg({ connectionString }));

  test('has its transactions fenced', async () => {
    await expectFenced(prisma());
  });

  test('a stale write is refused', async () => {
    const { id, key } = await shop.product(10);
    await shop.admin.query('UPDATE "Stock" SET fence = 9000000000000000000 WHERE id = $1', [id]);
    const held = prisma().$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: 0 } }));
    await expect(held).rejects.toBeInstanceOf(StaleTokenError);
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('a client that was connected before the extension was applied gets no transaction without a fence', async () => {
    const plain = shop.unextended(new PoollessPg({ connectionString }));
    await plain.stock.count();
    let ran = false;
    const held = shop.extend(plain).$withLock('connected before', () => {
      ran = true;
    });
    await expect(held).rejects.toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining('connected') });
    expect(ran).toBe(false);
    expect(Object.hasOwn(Object.prototype, 'startTransaction')).toBe(false);
  });
});
