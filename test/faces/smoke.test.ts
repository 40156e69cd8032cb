import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { Kysely, PostgresDialect } from 'kysely';
import { expect, test } from 'vitest';
import { fencedLocks as drizzleLocks } from '../../src/faces/drizzle.js';
import { fencedLocks as kyselyLocks } from '../../src/faces/kysely.js';
import { fencedLocks } from '../../src/faces/pg.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('faces', () => {
  const shop = new Shop();
  test('pg', async () => {
    const { id, key } = await shop.product(10);
    const pool = shop.pool();
    const locks = fencedLocks({ pool, redis: shop.redis() });
    shop.closeLater(() => locks.close());
    const all = await Promise.all(
      Array.from({ length: 10 }, () =>
        locks.withLock(key, async (client, lock) => {
          const { rows } = await client.query<{ quantity: number }>('SELECT quantity FROM "Stock" WHERE id = $1', [id]);
          await client.query('UPDATE "Stock" SET quantity = $2 WHERE id = $1', [id, (rows[0]?.quantity ?? 0) - 1]);
          return lock.token;
        }),
      ),
    );
    expect(new Set(all).size).toBe(10);
    expect((await shop.row(id))?.quantity).toBe(0);
    await expect(locks.withLock(key, (client) => client.query('COMMIT'))).rejects.toThrow('must not end');
    const handle = await locks.lock(key);
    await handle.$transaction(async (client) => client.query('UPDATE "Stock" SET quantity = 5 WHERE id = $1', [id]));
    await handle.release();
    expect((await shop.row(id))?.quantity).toBe(5);
    expect(await locks.oncePer(key, 60_000, () => 7)).toEqual({ ran: true, value: 7 });
    const permit = await locks.permit(key, { permits: 1 });
    expect(await permit.$transaction(async (client) => (await client.query('SELECT 1')).rowCount)).toBe(1);
    expect(await locks.tryWithPermit(key, { permits: 1 }, () => 1)).toEqual({ acquired: false });
    const number = locks.withPermit(key, { permits: 2 }, async (client, lock) => {
      await client.query('UPDATE "Stock" SET quantity = 4 WHERE id = $1', [id]);
      return lock.permit;
    });
    expect(await number).toBe(1);
    expect((await shop.row(id))?.quantity).toBe(4);
    await permit.release();
  });
  test('kysely', async () => {
    const { id, key } = await shop.product(10);
    const pool = shop.pool();
    const db = new Kysely<{ Stock: { id: number; quantity: number } }>({ dialect: new PostgresDialect({ pool }) });
    const locks = kyselyLocks({ db, pool, redis: shop.redis() });
    shop.closeLater(() => locks.close());
    await Promise.all(
      Array.from({ length: 10 }, () =>
        locks.withLock(
          key,
          async (trx) => {
            const { quantity } = await trx
              .selectFrom('Stock')
              .select('quantity')
              .where('id', '=', id)
              .executeTakeFirstOrThrow();
            await trx
              .updateTable('Stock')
              .set({ quantity: quantity - 1 })
              .where('id', '=', id)
              .execute();
          },
          { isolationLevel: 'RepeatableRead' },
        ),
      ),
    );
    expect((await shop.row(id))?.quantity).toBe(0);
  });
  test('drizzle', async () => {
    const { id, key } = await shop.product(10);
    const db = drizzle(shop.pool());
    const locks = drizzleLocks({ db, redis: shop.redis() });
    shop.closeLater(() => locks.close());
    await Promise.all(
      Array.from({ length: 10 }, () =>
        locks.withLock(
          key,
          async (tx) => {
            const { rows } = await tx.execute<{ quantity: number }>(sql`SELECT quantity FROM "Stock" WHERE id = ${id}`);
            await tx.execute(sql`UPDATE "Stock" SET quantity = ${(rows[0]?.quantity ?? 0) - 1} WHERE id = ${id}`);
          },
          { isolationLevel: 'Serializable' },
        ),
      ),
    );
    expect((await shop.row(id))?.quantity).toBe(0);
    const pool = shop.pool();
    const orm = fencedLocks({ pool, redis: shop.redis() });
    shop.closeLater(() => orm.close());
    const over = drizzle(orm.pool);
    const sell = () =>
      orm.withLock(key, async () => {
        const value = await over.transaction(async (tx) => {
          const { rows } = await tx.execute<{ quantity: number }>(sql`SELECT quantity FROM "Stock" WHERE id = ${id}`);
          await tx.execute(sql`UPDATE "Stock" SET quantity = ${(rows[0]?.quantity ?? 0) + 1} WHERE id = ${id}`);
          return 'done';
        });
        return value;
      });
    expect(await Promise.all(Array.from({ length: 10 }, sell))).toEqual(Array(10).fill('done'));
    expect((await shop.row(id))?.quantity).toBe(10);
    await expect(orm.withLock(key, async () => {})).rejects.toThrow('began no transaction');
    await expect(
      orm.withLock(key, async () => {
        await over.transaction(async () => {});
        await over.transaction(async () => {});
      }),
    ).rejects.toThrow('the rest of its function failed');
    await expect(
      orm.withLock(key, async () => {
        await over.transaction(async (tx) => {
          tx.rollback();
        });
      }),
    ).rejects.toThrow(/ollback/);
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
