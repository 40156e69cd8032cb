import { expect, test } from 'vitest';
import { currentTx, NestedError, ReentryError } from '../../src/index.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a lock of several keys inside another', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const keysOf = async () => [(await shop.product(1)).key, (await shop.product(1)).key] as const;

  test('joins if the outer one has them all, in whatever order they are named', async () => {
    const [one, two] = await keysOf();
    await prisma.$withLock([one, two], async (_, outer) => {
      for (const inner of [one, two, [two, one], [two, two]]) {
        expect(await prisma.$withLock(inner, (_, lock) => lock.token)).toBe(outer.token);
      }
    });
  });

  test.each(['aborted', 'failed in another part'])(
    'stays inside the lock where the outer one was %s before its end',
    async (how) => {
      const { id, key } = await shop.product(10);
      const goOn = gate();
      const leaving = new AbortController();
      let late: Promise<unknown>[] = [];
      const inner = () =>
        prisma.$withLock(key, async () => {
          const write = (client: Pick<typeof prisma, 'stock'>) =>
            goOn.opened.then(() => client.stock.update({ where: { id }, data: { quantity: 0 } }));
          late = [write(prisma), goOn.opened.then(() => write(currentTx(prisma, { outside: 'client' })))];
          for (const one of late) one.catch(() => {});
          leaving.abort(new Error('no sale'));
          await Promise.all(late);
        });
      const outer =
        how === 'aborted'
          ? prisma.$withLock(key, inner, { signal: leaving.signal })
          : prisma.$withLock(key, () => Promise.all([inner(), Promise.reject(new Error('no sale'))]));
      await expect(outer).rejects.toThrow('no sale');
      goOn.open();
      const refused = (await Promise.allSettled(late)) as PromiseRejectedResult[];
      expect(refused.map(({ reason }) => reason?.code)).toEqual(['INSIDE_TRANSACTION', 'CLOSED']);
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  test('is refused if the outer one has some of them, also where nested ones are allowed', async () => {
    const [one, two] = await keysOf();
    for (const nested of ['throw', 'allow'] as const) {
      const held = prisma.$withLock(one, () => prisma.$withLock([one, two], () => 'inner', { nested }));
      await expect(held).rejects.toMatchObject({ constructor: ReentryError, key: one });
    }
  });
});

describeWithShop('a lock inside a lock of another key', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const keysOf = async () => [(await shop.product(1)).key, (await shop.product(1)).key] as const;

  test('is refused, and names both and the call that may allow it', async () => {
    const [outer, inner] = await keysOf();
    const held = prisma.$withLock(outer, () => prisma.$withLock(inner, () => 'inner'));
    await expect(held).rejects.toMatchObject({
      constructor: NestedError,
      key: inner,
      message: expect.stringMatching(new RegExp(`${outer}.*'allow'\` in the options of the inner call`)),
    });
  });

  test('is had where the caller allows it, in a transaction of its own', async () => {
    const [outer, inner] = await keysOf();
    await prisma.$withLock(outer, async (_, outerLock) => {
      const token = await prisma.$withLock(inner, (_, lock) => lock.token, { nested: 'allow' });
      expect(token).not.toBe(outerLock.token);
    });
  });

  test('is refused and allowed alike for a handle, and for the transaction of one', async () => {
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
