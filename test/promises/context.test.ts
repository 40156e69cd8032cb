import { expect, test } from 'vitest';
import {
  InvalidOptionError,
  type LockTx,
  NestedError,
  ReentryError,
  TransactionAbortedError,
} from '../../src/index.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('a lock inside a lock of the same key', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const setTo = (tx: LockTx<ShopClient>, id: number, quantity: number) =>
    tx.stock.update({ where: { id }, data: { quantity } });

  test("is refused where it says `reentry: 'throw'`, and the outer one goes on", async () => {
    const { id, key } = await shop.product(10);
    await prisma.$withLock(key, async (tx) => {
      await setTo(tx, id, 5);
      const inner = prisma.$withLock(key, () => 'inner', { reentry: 'throw' });
      await expect(inner).rejects.toMatchObject({ constructor: ReentryError, code: 'REENTRY', key });
      const tried = prisma.$tryWithLock(key, () => 'inner', { reentry: 'throw' });
      await expect(tried).rejects.toBeInstanceOf(ReentryError);
    });
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  test('that throws dooms the outer one, though its error is caught', async () => {
    const { id, key } = await shop.product(10);
    const noSale = new Error('no sale');
    const held = prisma.$withLock(key, async (tx) => {
      await setTo(tx, id, 5);
      const inner = prisma.$withLock(key, () => Promise.reject(noSale));
      await expect(inner).rejects.toBe(noSale);
      return 'sold';
    });
    const error = await held.catch((error: unknown) => error);
    expect(error).toBeInstanceOf(TransactionAbortedError);
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'inner-call', key });
    expect((error as Error).cause).toBe(noSale);
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('that one of them fails dooms all of it', async () => {
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, () =>
      Promise.allSettled([
        prisma.$withLock(key, (tx) => setTo(tx, id, 5)),
        prisma.$withLock(key, () => Promise.reject(new Error('no sale'))),
      ]),
    );
    await expect(held).rejects.toBeInstanceOf(TransactionAbortedError);
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('that was not awaited dooms the outer one, and writes nothing later', async () => {
    const { id, key } = await shop.product(10);
    const later = gate();
    let [forgotten, written]: Promise<unknown>[] = [];
    const held = prisma.$withLock(key, async (tx) => {
      await setTo(tx, id, 5);
      const inner = prisma.$withLock(key, (innerTx) => {
        const write = later.opened.then(() => setTo(innerTx, id, 4));
        written = write.catch((error: unknown) => error);
        return write;
      });
      forgotten = inner.catch((error: unknown) => error);
    });
    await expect(held).rejects.toMatchObject({ constructor: TransactionAbortedError, reason: 'not-awaited' });
    expect(await forgotten).toMatchObject({ reason: 'inner-call', cause: { reason: 'not-awaited' } });
    later.open();
    expect(await written).toMatchObject({ code: 'CLOSED', key });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test.each([{ isolationLevel: 'Serializable' as const }, { retries: 1 }])(
    'with options that the outer transaction cannot follow any more, %o, is refused and dooms nothing',
    async (options) => {
      const { id, key } = await shop.product(10);
      await prisma.$withLock(key, async (tx) => {
        await setTo(tx, id, 5);
        const inner = prisma.$withLock(key, () => 'inner', options);
        await expect(inner).rejects.toMatchObject({
          constructor: InvalidOptionError,
          option: Object.keys(options)[0],
        });
      });
      expect((await shop.row(id))?.quantity).toBe(5);
    },
  );

  test('whose own timeout is over ends all of it, though the outer one would go on', async () => {
    const { id, key } = await shop.product(10);
    const held = prisma.$withLock(key, async (tx) => {
      await setTo(tx, id, 5);
      await prisma.$withLock(key, () => new Promise(() => {}), { timeout: 50 }).catch(() => {});
    });
    const error = await held.catch((error: unknown) => error);
    expect(error).toMatchObject({ reason: 'timeout', message: expect.stringContaining('50 ms') });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('whose own signal aborts ends all of it, with the reason', async () => {
    const { id, key } = await shop.product(10);
    const abort = new AbortController();
    const held = prisma.$withLock(key, async (tx, outer) => {
      await setTo(tx, id, 5);
      const inner = prisma.$withLock(key, () => new Promise(() => {}), { signal: abort.signal });
      abort.abort('closing time');
      await inner.catch(() => {});
      expect(outer.signal.reason).toBe('closing time');
    });
    expect(await held.catch((error: unknown) => error)).toBe('closing time');
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('runs again when the outer one does, under its new token', async () => {
    const { id, key } = await shop.product(10);
    const runs: bigint[][] = [];
    await prisma.$withLock(
      key,
      (_, outer) =>
        prisma.$withLock(key, async (tx, inner) => {
          runs.push([outer.token, inner.token]);
          await tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } });
          if (runs.length === 1) await tx.$executeRaw`DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$`;
        }),
      { retries: 1 },
    );
    expect(runs).toHaveLength(2);
    expect(runs[1]?.[1]).toBe(runs[1]?.[0]);
    expect(runs[1]?.[1]).toBeGreaterThan(runs[0]?.[1] as bigint);
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test('is none where the outer function has ended, though its context goes on', async () => {
    const { key } = await shop.product(1);
    const ended = gate();
    const { later, token } = await prisma.$withLock(key, (_, lock) => ({
      later: ended.opened.then(() => prisma.$withLock(key, (_, own) => own.token)),
      token: lock.token,
    }));
    ended.open();
    expect(await later).toBeGreaterThan(token);
  });

  test('by a client that is extended otherwise is refused, instead of waiting for itself', async () => {
    const { key } = await shop.product(1);
    const extended = prisma.$extends({ client: { $more: () => 'more' } });
    const other = shop.client().prisma;
    for (const inner of [extended, other]) {
      const held = prisma.$withLock(key, () => inner.$withLock(key, () => 'inner'));
      await expect(held).rejects.toMatchObject({ constructor: ReentryError, key });
    }
    // The same one joins, however it is extended.
    expect(await extended.$withLock(key, () => extended.$withLock(key, (tx) => typeof tx.$more))).toBe('function');
  });

  test('is refused where one of the two is a handle, instead of waiting for itself', async () => {
    const { key } = await shop.product(1);
    await expect(prisma.$withLock(key, () => prisma.$lock(key))).rejects.toMatchObject({ code: 'REENTRY', key });
    const lock = await prisma.$lock(key);
    const inHandle = lock.$transaction(() => prisma.$withLock(key, () => 'inner'));
    await expect(inHandle).rejects.toMatchObject({ code: 'REENTRY', key });
    const handleInHandle = lock.$transaction(() => lock.$transaction(() => 'inner'));
    await expect(handleInHandle).rejects.toMatchObject({ code: 'REENTRY', key });
    await expect(lock.$transaction(() => prisma.$lock(key))).rejects.toMatchObject({ code: 'REENTRY', key });
    await lock.release();
  });
});

describeWithShop('a lock inside a lock of other keys', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const keysOf = async () => [(await shop.product(1)).key, (await shop.product(1)).key] as const;

  test('of several joins if the outer one has them all, in whatever order they are named', async () => {
    const [one, two] = await keysOf();
    await prisma.$withLock([one, two], async (_, outer) => {
      for (const inner of [one, two, [two, one], [two, two]]) {
        expect(await prisma.$withLock(inner, (_, lock) => lock.token)).toBe(outer.token);
      }
    });
  });

  test('of several is refused if the outer one has some of them, also where nested ones are allowed', async () => {
    const [one, two] = await keysOf();
    for (const nested of ['throw', 'allow'] as const) {
      const held = prisma.$withLock(one, () => prisma.$withLock([one, two], () => 'inner', { nested }));
      await expect(held).rejects.toMatchObject({ constructor: ReentryError, key: one });
    }
  });

  test('of another key is refused and allowed alike for a handle, and for the transaction of one', async () => {
    const [outer, inner] = await keysOf();
    const lock = await prisma.$lock(inner);
    await prisma.$withLock(outer, async () => {
      await expect(lock.$transaction(() => 'inner')).rejects.toBeInstanceOf(NestedError);
      expect(await lock.$transaction(() => 'inner', { nested: 'allow' })).toBe('inner');
    });
    await lock.release();
    await prisma.$withLock(outer, async () => {
      await expect(prisma.$lock(inner)).rejects.toBeInstanceOf(NestedError);
      await (await prisma.$lock(inner, { nested: 'allow' })).release();
    });
    const outermost = await prisma.$lock(outer);
    const inHandle = outermost.$transaction(() => prisma.$withLock(inner, () => 'inner'));
    await expect(inHandle).rejects.toMatchObject({ constructor: NestedError, key: inner });
    await outermost.release();
  });
});
