import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { type Lock, type LockTx, StaleTokenError } from '../../../src/index.js';
import { FenceWorld } from '../../support/fence-world.js';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';

describeWithShop('retries: the whole transaction again, under the same lease and a fresh token', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  /** Writes the row under another key, with a later token, while ours is at work. */
  const underAnotherKey = (id: number) =>
    shop
      .client()
      .prisma.$withLock(
        `other:${id}:${randomUUID()}`,
        (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }),
        { nested: 'allow' },
      );

  test('a row that was written under another key', async () => {
    const { id, key } = await shop.product(10);
    const tokens: bigint[] = [];
    await prisma.$withLock(
      key,
      async (tx, lock) => {
        tokens.push(lock.token);
        if (tokens.length === 1) await underAnotherKey(id);
        await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
      },
      { retries: 1 },
    );
    expect(tokens).toHaveLength(2);
    expect(tokens[1]).toBeGreaterThan(tokens[0] ?? 0n);
    expect(await shop.row(id)).toEqual({ quantity: 8, fence: tokens[1] });
  });

  test('not more often than they say, and the last error is what comes', async () => {
    const { key } = await shop.product(10);
    const rows = [await shop.product(10), await shop.product(10), await shop.product(10), await shop.product(10)];
    let runs = 0;
    const work = async (tx: Pick<typeof prisma, 'stock'>) => {
      // Another row each time: the one that has refused us once is ours from the beginning of the next run.
      const id = rows[runs++]?.id ?? 0;
      await underAnotherKey(id);
      await tx.stock.update({ where: { id }, data: { quantity: 0 } });
    };
    await expect(prisma.$withLock(key, work, { retries: 2 })).rejects.toBeInstanceOf(StaleTokenError);
    expect(runs).toBe(3);
    await expect(prisma.$withLock(key, work)).rejects.toBeInstanceOf(StaleTokenError);
    expect(runs).toBe(4);
  });

  test.each(['40001', '40P01'])('a conflict in a statement (%s), also under the token of a handle', async (code) => {
    const { id, key } = await shop.product(10);
    const runs: bigint[] = [];
    const sell = async (tx: LockTx<ShopClient>, { token }: Lock) => {
      await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
      const conflict = `DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '${code}'; END $$`;
      if (runs.push(token) % 2 === 1) await tx.$executeRawUnsafe(conflict);
    };
    await prisma.$withLock(key, sell, { retries: 1 });
    await using handle = await prisma.$lock(key);
    await handle.$transaction(sell, { retries: 1 });
    expect(runs.slice(2)).toEqual([handle.token, handle.token]);
    expect(await shop.row(id)).toEqual({ quantity: 8, fence: handle.token });
  });

  test("not a handle's transaction: its token is too low for that row in every run", async () => {
    const { id, key } = await shop.product(10);
    const runs: bigint[] = [];
    const sell = async (tx: LockTx<ShopClient>, { token }: Lock) => {
      runs.push(token);
      await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
    };
    const handle = await prisma.$lock(key);
    await underAnotherKey(id);
    await expect(handle.$transaction(sell, { retries: 3 })).rejects.toMatchObject({
      code: 'STALE_TOKEN',
      reason: 'other-key',
      ofHandle: true,
      message: expect.stringMatching(/does not help.*release the handle and take it again.*several keys/),
    });
    expect(runs).toEqual([handle.token]);
    await handle.release();
    // What the message says to do.
    const again = await prisma.$lock(key);
    await again.$transaction(sell);
    await again.release();
    expect(await shop.row(id)).toEqual({ quantity: 8, fence: again.token });
  });

  test('nothing else: not an error of the function, not after a strike', async () => {
    const { id, key } = await shop.product(10);
    let runs = 0;
    const failing = prisma.$withLock(
      key,
      () => {
        runs++;
        throw new Error('no sale');
      },
      { retries: 5 },
    );
    await expect(failing).rejects.toThrow('no sale');
    const abort = new AbortController();
    const struck = prisma.$withLock(
      key,
      async (tx) => {
        runs++;
        await underAnotherKey(id);
        abort.abort('closing time');
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
      },
      { retries: 5, signal: abort.signal },
    );
    await expect(struck).rejects.toBe('closing time');
    expect(runs).toBe(2);
  });
});

describeWithShop('retries: the row that has refused a run is locked before the next token is drawn', () => {
  const world = new FenceWorld('fence_retries', undefined, []);

  const conditions = {
    'by a compound key': (memberId: number) => ({ memberId_number: { memberId, number: 1 } }),
    'by its other compound key': (memberId: number) => ({ title: { number: 1, name: `note ${memberId}` } }),
  };

  test.each(Object.entries(conditions))('%s', async (name, condition) => {
    const { id } = await world.client().member.create({ data: { name, value: 1 } });
    await world.client().note.create({ data: { memberId: id, number: 1, name: `note ${id}`, value: 1 } });
    const row = 'FROM people."Note" WHERE "memberId" = $1';
    const isLocked = async () => (await world.admin.query(`SELECT ${row} FOR UPDATE SKIP LOCKED`, [id])).rowCount === 0;
    const later = `UPDATE people."Note" SET fence = nextval('fenced_lock.token') WHERE "memberId" = $1`;
    const locked: boolean[] = [];
    await world.client().$withLock(
      `note:${id}`,
      async (tx) => {
        locked.push(await isLocked());
        if (locked.length === 1) await world.admin.query(later, [id]);
        await tx.note.update({ where: condition(id), data: { value: 7 } });
      },
      { retries: 1 },
    );
    expect(locked).toEqual([false, true]);
  });
});
