import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { fencedLock, StaleTokenError } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { describeWithShop, Shop, type ShopClient, type ShopOptions } from '../support/shop.js';

/** From this use on a statement is prepared. */
const OFTEN = 5;
const MOST = 100;

describeWithShop('a statement of the work that is used often', () => {
  const shop = new Shop();

  /** A client with one connection, and the statements of the work that are prepared on it. */
  function narrow(options: ShopOptions = {}) {
    const { prisma, plain } = shop.client({ ...options, pool: { max: 1, ...options.pool } });
    return { prisma, plain, prepared: () => preparedOn(plain) };
  }

  async function preparedOn(plain: PrismaClient): Promise<string[]> {
    const rows = await plain.$queryRaw<{ statement: string }[]>`
      SELECT statement FROM pg_prepared_statements WHERE name LIKE '% fenced_lock %'`;
    return rows.map(({ statement }) => statement);
  }

  const sellOne = (prisma: ShopClient, { id, key }: { id: number; key: string }) =>
    prisma.$withLock(key, async (tx) => {
      const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
      return await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
    });

  async function times(count: number, action: (turn: number) => Promise<unknown>): Promise<void> {
    for (let turn = 0; turn < count; turn++) await action(turn);
  }

  /** A table that only this test has, with one row. */
  async function table(): Promise<string> {
    const name = `"prepared ${randomUUID()}"`;
    await shop.admin.query(`CREATE TABLE ${name} (id integer PRIMARY KEY, amount integer)`);
    shop.closeLater(() => shop.admin.query(`DROP TABLE ${name}`));
    await shop.admin.query(`INSERT INTO ${name} VALUES (1, 7); GRANT ALL ON ${name} TO PUBLIC`);
    return name;
  }

  test('is prepared at its fifth use, and gives what it gave before', async () => {
    const { prisma, prepared } = narrow();
    const product = await shop.product(20);
    await times(OFTEN - 1, () => sellOne(prisma, product));
    expect(await prepared()).toEqual([]);
    await times(3, () => sellOne(prisma, product));
    const texts = await prepared();
    expect(texts.map((text) => text.slice(0, 6)).sort()).toEqual(['SELECT', 'UPDATE']);
    expect(await sellOne(prisma, product)).toMatchObject({ quantity: 12 });
    expect(await shop.row(product.id)).toMatchObject({ quantity: 12 });
    expect(await prepared()).toHaveLength(2);
  });

  test('is refused with a stale token as ever', async () => {
    const { prisma, prepared } = narrow();
    const product = await shop.product(20);
    await times(OFTEN + 1, () => sellOne(prisma, product));
    expect(await prepared()).toHaveLength(2);
    await shop.admin.query('UPDATE "Stock" SET fence = fence + 1000000 WHERE id = $1', [product.id]);
    await expect(sellOne(prisma, product)).rejects.toBeInstanceOf(StaleTokenError);
    expect(await shop.row(product.id)).toMatchObject({ quantity: 14 });
  });

  test('is prepared in the transactions of a handle, too', async () => {
    const { prisma, prepared } = narrow();
    const { id, key } = await shop.product(20);
    const lock = await prisma.$lock(key);
    await times(OFTEN, () => lock.$transaction((tx) => tx.stock.findUniqueOrThrow({ where: { id } })));
    await lock.release();
    expect(await prepared()).toHaveLength(1);
  });

  test.each([
    ['has an asterisk', (from: string) => `SELECT * FROM ${from} WHERE id = $1`],
    ['is longer than 4,000 characters', (from: string) => `SELECT id ${' '.repeat(4_000)} FROM ${from} WHERE id = $1`],
    ['begins with another word', (from: string) => `TABLE ${from} LIMIT $1`],
  ])('is sent unnamed if it %s', async (_, sql) => {
    const { prisma, prepared } = narrow();
    const { key } = await shop.product(1);
    const text = sql(await table());
    await times(OFTEN + 2, () => prisma.$withLock(key, (tx) => tx.$queryRawUnsafe(text, 1)));
    expect(await prepared()).toEqual([]);
  });

  test('is one of a hundred at most', async () => {
    const { prisma, prepared } = narrow();
    const { key } = await shop.product(1);
    await prisma.$withLock(key, (tx) =>
      times((MOST + 10) * OFTEN, (use) => tx.$queryRawUnsafe(`SELECT ${Math.floor(use / OFTEN)} AS one`)),
    );
    expect(await prepared()).toHaveLength(MOST);
  });

  test('is not forgotten behind 150 others that are used less often', async () => {
    const { prisma, prepared } = narrow();
    const { key } = await shop.product(1);
    await prisma.$withLock(key, (tx) =>
      times(OFTEN, async (turn) => {
        await tx.$queryRaw`SELECT 'often' AS one`;
        await times(150, (other) => tx.$queryRawUnsafe(`SELECT ${turn * 150 + other} AS one`));
      }),
    );
    expect(await prepared()).toEqual(["SELECT 'often' AS one"]);
  });

  test('is sent unnamed where the connection does not lead straight to the backend, as behind a pooler', async () => {
    const pool = new pg.Pool({ connectionString: inject('postgres').app, max: 1 });
    // A pooler tells a backend that it has made up, or the one that it had at first.
    pool.on('connect', (client) => Object.assign(client, { processID: 1 }));
    const plain = new PrismaClient({ adapter: new PrismaPg(pool, { disposeExternalPool: true }) });
    shop.closeLater(() => plain.$disconnect());
    const prisma = plain.$extends(fencedLock({ redis: shop.redis() }));
    const product = await shop.product(20);
    await times(OFTEN + 2, () => sellOne(prisma, product));
    expect(await preparedOn(plain)).toEqual([]);
  });

  test('whose first use under its name fails stays prepared', async () => {
    const { prisma, prepared } = narrow();
    const { key } = await shop.product(1);
    const divide = (by: number) => prisma.$withLock(key, (tx) => tx.$queryRaw`SELECT 6 / ${by}::int AS quotient`);
    await times(OFTEN - 1, () => divide(2));
    await expect(divide(0)).rejects.toThrow('division by zero');
    // To prepare it once more would fail, because the server has it.
    expect(await prepared()).toHaveLength(1);
    expect(await divide(2)).toEqual([{ quotient: 3 }]);
    expect(await divide(3)).toEqual([{ quotient: 2 }]);
  });

  test('that fails later stays prepared', async () => {
    const { prisma, prepared } = narrow();
    const { key } = await shop.product(1);
    const divide = (by: number) => prisma.$withLock(key, (tx) => tx.$queryRaw`SELECT 6 / ${by}::int AS quotient`);
    await times(OFTEN, () => divide(2));
    await expect(divide(0)).rejects.toThrow('division by zero');
    expect(await divide(2)).toEqual([{ quotient: 3 }]);
    expect(await prepared()).toHaveLength(1);
  });

  const amount = (prisma: ShopClient, key: string, from: string, retries = 0) =>
    prisma.$withLock(key, (tx) => tx.$queryRawUnsafe<unknown>(`SELECT amount FROM ${from} WHERE id = $1`, 1), {
      retries,
    });

  test('whose column gets another type fails once in a process, and is sent unnamed from then on', async () => {
    const { prisma, prepared } = narrow();
    const { key } = await shop.product(1);
    const [from, other] = [await table(), await table()];
    await times(OFTEN, () => amount(prisma, key, from));
    await times(OFTEN, () => amount(prisma, key, other));
    expect(await prepared()).toHaveLength(2);
    for (const each of [from, other]) await shop.admin.query(`ALTER TABLE ${each} ALTER amount TYPE text`);
    await expect(amount(prisma, key, from)).rejects.toThrow('cached plan must not change result type');
    expect(await amount(prisma, key, from)).toEqual([{ amount: '7' }]);
    expect(await amount(prisma, key, other)).toEqual([{ amount: '7' }]);
  });

  test('whose column gets another type is run again where `retries` allows it', async () => {
    const { prisma } = narrow();
    const { key } = await shop.product(1);
    const from = await table();
    await times(OFTEN, () => amount(prisma, key, from));
    await shop.admin.query(`ALTER TABLE ${from} ALTER amount TYPE text`);
    expect(await amount(prisma, key, from, 1)).toEqual([{ amount: '7' }]);
  });

  test('is sent unnamed after the connection has lost what it had prepared, and no call fails', async () => {
    const { prisma, plain, prepared } = narrow();
    const product = await shop.product(20);
    await times(OFTEN, () => sellOne(prisma, product));
    await plain.$executeRaw`DISCARD ALL`;
    await times(OFTEN, () => sellOne(prisma, product));
    expect(await shop.row(product.id)).toMatchObject({ quantity: 10 });
    expect(await prepared()).toEqual([]);
  });

  test('that is lost by SQL of the work itself fails that call, and is sent unnamed from then on', async () => {
    const { prisma } = narrow();
    const product = await shop.product(20);
    await times(OFTEN, () => sellOne(prisma, product));
    const forgetful = prisma.$withLock(product.key, async (tx) => {
      await tx.$executeRaw`DEALLOCATE ALL`;
      await tx.stock.findUniqueOrThrow({ where: { id: product.id } });
    });
    await expect(forgetful).rejects.toThrow('does not exist');
    expect(await sellOne(prisma, product)).toMatchObject({ quantity: 14 });
  });
});
