import { expect, test } from 'vitest';
import { fencedLocks, currentLock as ofFace } from '../src/faces/pg.js';
import { currentLock, currentTx, fencedLock, InvalidOptionError, type LockTx, OutsideLockError } from '../src/index.js';
import { eventually } from './support/eventually.js';
import { describeWithShop, gate, Shop, type ShopClient } from './support/shop.js';

describeWithShop('the transaction and the lock of the present code', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  const outside = expect.objectContaining({ constructor: OutsideLockError, code: 'OUTSIDE_LOCK' });
  const refused = (call: () => unknown) => {
    try {
      return call();
    } catch (error) {
      return error;
    }
  };

  /** As a helper that was not given `tx`. */
  async function sell(id: number): Promise<void> {
    const tx: LockTx<ShopClient> = currentTx(prisma);
    const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
    await currentTx(prisma).stock.update({ where: { id }, data: { quantity: quantity - 1 } });
  }

  test('let helpers work in the transaction, which rolls them back', async () => {
    const { id, key } = await shop.product(10);
    await Promise.all(Array.from({ length: 5 }, () => prisma.$withLock(key, () => sell(id))));
    expect((await shop.row(id))?.quantity).toBe(5);
    const failed = prisma.$withLock(key, async () => {
      await sell(id);
      throw new Error('no sale');
    });
    await expect(failed).rejects.toThrow('no sale');
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  test('are there in $tryWithLock, and in a transaction of a handle', async () => {
    const { id, key } = await shop.product(10);
    await eventually('it was free', async () => (await prisma.$tryWithLock(key, () => sell(id))).acquired);
    const handle = await prisma.$lock(key);
    await handle.$transaction(async (tx, lock) => {
      expect(currentTx(prisma) === tx).toBe(true);
      expect(currentLock(prisma)).toBe(lock);
      await sell(id);
    });
    await handle.release();
    expect((await shop.row(id))?.quantity).toBe(8);
    expect(refused(() => currentTx(prisma))).toEqual(outside);
  });

  test('of one client are not those of another, also where one lock is inside the other', async () => {
    const [one, two] = [await shop.product(1), await shop.product(1)];
    const other = shop.client().prisma;
    await prisma.$withLock(one.key, async (tx, lock) => {
      expect([currentTx(prisma), currentLock(prisma), currentLock()]).toEqual([tx, lock, lock]);
      await tx.stock.count();
      const error = refused(() => currentTx(other));
      expect(error).toEqual(outside);
      expect(error).toMatchObject({ key: one.key, message: expect.stringContaining('another client') });
      await other.$withLock(
        two.key,
        (otherTx) => {
          expect(currentTx(prisma) === tx).toBe(true);
          expect(currentTx(other) === otherTx).toBe(true);
          expect(currentLock(prisma)).toBe(lock);
          expect(currentLock().key).toBe(two.key);
        },
        { nested: 'allow' },
      );
      await prisma.$withLock(two.key, (inner) => expect(currentTx(prisma) === inner).toBe(true), { nested: 'allow' });
      expect([currentTx(prisma) === tx, currentLock() === lock]).toEqual([true, true]);
    });
  });

  test('are not there outside of a lock, nor for what a function has left behind', async () => {
    const { key } = await shop.product(1);
    expect(refused(() => currentTx(prisma))).toEqual(outside);
    expect(refused(() => currentLock())).toEqual(outside);
    const later = gate();
    let left: Promise<unknown> | undefined;
    await prisma.$withLock(key, () => {
      left = later.opened.then(() => refused(() => currentTx(prisma)));
    });
    later.open();
    expect(await left).toEqual(outside);
  });

  test("are the client itself outside of a lock, with `outside: 'client'`, and the transaction inside", async () => {
    const { id, key } = await shop.product(10);
    const count = async () =>
      await currentTx(prisma, { outside: 'client' }).stock.updateMany({ where: { id }, data: { quantity: 3 } });
    expect(currentTx(prisma, { outside: 'client' }) === (prisma as unknown)).toBe(true);
    const failed = prisma.$withLock(key, async () => {
      await count();
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect((await shop.row(id))?.quantity).toBe(10);
    await count();
    expect((await shop.row(id))?.quantity).toBe(3);
  });

  test("are refused with `outside: 'client'` in a lock of another client on the same adapter, and not on another one", async () => {
    const { key } = await shop.product(10);
    const { prisma: inner, plain } = shop.client();
    const levels = [inner, inner.$extends({ name: 'outer' }), plain.$extends(fencedLock({ redis: shop.redis() }))];
    for (const holder of levels) {
      await holder.$withLock(key, (tx: unknown) => {
        for (const client of levels) {
          const found = refused(() => currentTx(client, { outside: 'client' }));
          if (client === holder) expect(found === tx).toBe(true);
          else
            expect(found).toMatchObject({
              code: 'OUTSIDE_LOCK',
              key,
              message: expect.stringContaining('another client'),
            });
        }
        expect(currentTx(prisma, { outside: 'client' }) === (prisma as unknown)).toBe(true);
      });
    }
  });

  test('the lock is there under the locks of a pool, which take no client', async () => {
    const { key } = await shop.product(1);
    const locks = fencedLocks({ pool: shop.pool(), redis: shop.redis() });
    shop.closeLater(() => locks.close());
    await locks.withLock(key, (_, lock) => {
      expect(ofFace()).toBe(lock);
      expect(refused(() => ofFace(locks))).toMatchObject({
        option: 'client',
        message: expect.stringContaining('left out'),
      });
    });
    expect(refused(() => ofFace())).toEqual(outside);
  });

  test('are refused to what is no locking client, and to unknown options, by name', async () => {
    const { key } = await shop.product(1);
    const notInjected = undefined as unknown as ShopClient;
    const none = [
      () => currentTx(notInjected),
      () => currentTx(shop),
      () => currentLock({}),
      () => currentLock(null as never),
    ];
    const refusal = { constructor: InvalidOptionError, option: 'client' };
    for (const call of none) {
      expect(refused(call)).toMatchObject(refusal);
      // In a lock, too: what was not injected must not become the client of another.
      await prisma.$withLock(key, () => expect(refused(call)).toMatchObject(refusal));
    }
    const never = { outside: 'no' } as never;
    expect(refused(() => currentTx(prisma, never))).toMatchObject({ option: 'outside' });
    expect(refused(() => currentTx(prisma, { inside: 'client' } as never))).toMatchObject({ option: 'inside' });
  });
});
