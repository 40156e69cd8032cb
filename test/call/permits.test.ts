import { expect, expectTypeOf, test } from 'vitest';
import { anyPermit, permitName } from '../../src/base/permits.js';
import type { LockOptions, Permit } from '../../src/index.js';
import { namesOf } from '../../src/redis/names.js';
import { aroundScripts } from '../support/around-scripts.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';
import { someKey } from '../waiting/actors.js';
import { registered } from './handle-work.js';

/** A turn of one of so many, until it is told to go on. */
async function working(prisma: ShopClient, key: string, permits: number, options?: LockOptions) {
  const [inside, end] = [gate<Permit>(), gate()];
  const held = prisma.$withPermit(
    key,
    { permits },
    async (_, lock) => {
      inside.open(lock);
      await end.opened;
    },
    options,
  );
  held.catch(() => {});
  const lock = await Promise.race([inside.opened, held.then(() => undefined)]);
  return {
    permit: lock?.permit,
    token: lock?.token as bigint,
    signal: lock?.signal as AbortSignal,
    held,
    end: async () => {
      end.open();
      await held;
    },
  };
}

describeWithShop('permits', () => {
  const shop = new Shop();
  const { prisma } = shop.client();
  const [A, B, C] = [shop.client().prisma, shop.client().prisma, shop.client().prisma];
  const waits = (key: string, permits: number, places: number) => shop.queued(anyPermit(key, permits), places);

  test('as many work at a time as there are, each with a number of its own, over all processes', async () => {
    const key = someKey();
    const turns = [await working(A, key, 3), await working(B, key, 3), await working(A, key, 3)];
    expect(turns.map(({ permit }) => permit)).toEqual([0, 1, 2]);
    expect(await C.$tryWithPermit(key, { permits: 3 }, () => {})).toEqual({ acquired: false });
    await turns[1]?.end();
    expect(await C.$tryWithPermit(key, { permits: 3 }, (_, { permit }) => permit)).toEqual({
      acquired: true,
      value: 1,
    });
    for (const turn of turns) await turn.end();
  });

  test('a turn takes and gives back, and sends no hint: nobody knows which permit comes free first', async () => {
    const redis = shop.redis();
    const sent: unknown[] = [];
    aroundScripts(redis, ({ name, send }) => {
      sent.push(name);
      return send();
    });
    expect(await shop.client({ redis }).prisma.$withPermit(someKey(), { permits: 2 }, () => 'in')).toBe('in');
    expect([...new Set(sent)]).toEqual(['permitAcquire', 'permitRelease']);
  });

  test('the function gets the key, the number and a token, and its writes commit', async () => {
    const { id, key } = await shop.product(10);
    const said = await prisma.$withPermit(key, { permits: 2 }, async (tx, lock) => {
      expectTypeOf(lock.permit).toBeNumber();
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      return { key: lock.key, json: lock.toJSON(), fence: lock.token };
    });
    expect(said).toEqual({
      key,
      json: { keys: [key], permit: 0, token: String(said.fence) },
      fence: expect.any(BigInt),
    });
    expect(await shop.row(id)).toEqual({ quantity: 9, fence: said.fence });
  });

  test('the callers of three processes have their turns in the order in which they came', async () => {
    const key = someKey();
    const first = [await working(A, key, 2), await working(B, key, 2)];
    const served: number[] = [];
    const callers: Promise<void>[] = [];
    for (const [place, client] of [A, B, C, C, B, A, C, A, B].entries()) {
      callers.push(client.$withPermit(key, { permits: 2 }, () => void served.push(place)));
      await waits(key, 2, place + 1);
    }
    // The other one stays: it is the only way in which each turn ends before the next one begins.
    await first[0]?.end();
    await Promise.all(callers);
    expect(served).toEqual(callers.map((_, place) => place));
    await first[1]?.end();
  });

  test('a lower number waits until fewer are at work, nobody is ended, and who comes behind it waits, too', async () => {
    const key = someKey();
    const turns = [await working(A, key, 3), await working(B, key, 3), await working(C, key, 3)];
    const served: string[] = [];
    const lower = A.$withPermit(key, { permits: 2 }, (_, { permit }) => void served.push(`lower ${permit}`));
    await waits(key, 2, 1);
    const later = B.$withPermit(key, { permits: 3 }, (_, { permit }) => void served.push(`later ${permit}`));
    await waits(key, 2, 2);
    await turns[0]?.end();
    expect(await C.$tryWithPermit(key, { permits: 3 }, () => {})).toEqual({ acquired: false });
    expect(served).toEqual([]);
    await turns[1]?.end();
    await Promise.all([lower, later]);
    expect(served.toSorted()).toEqual([expect.stringMatching(/^later [01]$/), 'lower 0']);
    expect(turns[2]?.signal.aborted).toBe(false);
    await turns[2]?.end();
  });

  test('a higher number works beside those that are at work under a lower one', async () => {
    const key = someKey();
    const one = await working(A, key, 1);
    const two = await working(B, key, 2);
    expect([one.permit, two.permit]).toEqual([0, 1]);
    await two.end();
    await one.end();
  });

  test('a lock of the same key is another thing, and no key is the name of a permit', async () => {
    const key = someKey();
    const turn = await working(A, key, 1);
    await A.$withLock(key, () => {});
    for (const name of [permitName(key, 0), anyPermit(key, 3)]) {
      await expect(A.$withLock(name, () => {})).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    }
    await turn.end();
  });

  test('a call of the same key and number inside joins, and one of another number is refused', async () => {
    const key = someKey();
    const tokens = await prisma.$withPermit(key, { permits: 2 }, async (_, lock) => {
      const inner = await prisma.$withPermit(key, { permits: 2 }, (_tx, { token, permit }) => ({ token, permit }));
      await expect(prisma.$withPermit(key, { permits: 3 }, () => {})).rejects.toMatchObject({ code: 'NESTED' });
      return [lock.token === inner.token, lock.permit === inner.permit];
    });
    expect(tokens).toEqual([true, true]);
  });

  test.each([0, 1.5, 1_001, '3', undefined])('permits: %s is refused', async (permits) => {
    await expect(prisma.$withPermit(someKey(), { permits } as never, () => {})).rejects.toThrow(
      /permits.*whole number/,
    );
  });

  test('a wait that ends says so, and leaves no place behind', async () => {
    const key = someKey();
    const turn = await working(A, key, 1);
    const late = B.$withPermit(key, { permits: 1 }, () => {}, { waitTime: 50 });
    await expect(late).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', key: anyPermit(key, 1) });
    await waits(key, 1, 0);
    await turn.end();
  });

  test('a handle has its number for all of its transactions, and the next one gets it when it is released', async () => {
    const key = someKey();
    const handle = await A.$permit(key, { permits: 2 });
    const other = await B.$permit(key, { permits: 2 });
    expect([handle.permit, other.permit, handle.key]).toEqual([0, 1, key]);
    expect(await registered(shop, permitName(key, 1))).toEqual({
      token: other.token,
      holder: other.toJSON().holders[0],
    });
    expect(await handle.$transaction((_, { permit, token }) => ({ permit, token }))).toEqual({
      permit: 0,
      token: handle.token,
    });
    const next = C.$permit(key, { permits: 2 });
    await waits(key, 2, 1);
    await other.release();
    expect((await next).permit).toBe(1);
    await handle.release();
    await (await next).release();
  });

  test('a handle that is resumed elsewhere keeps its permit, and the old one has lost it', async () => {
    const key = someKey();
    const old = await A.$permit(key, { permits: 2 });
    const resumed = await B.$resumeLock(JSON.parse(JSON.stringify(old)));
    expect([resumed.permit, resumed.key, resumed.token]).toEqual([0, key, old.token]);
    await expect(old.$transaction(() => {})).rejects.toMatchObject({ code: expect.stringMatching(/LOST|STALE/) });
    await resumed.$transaction(() => {});
    const other = await C.$permit(key, { permits: 2 });
    expect(other.permit).toBe(1);
    await resumed.release();
    await other.release();
  });

  test('FLUSHALL: those at work lose their permits, and the next ones wait in Postgres until they have ended', async () => {
    const key = someKey();
    const old = await working(A, key, 1, { leaseTime: 3_000 });
    await shop.redis().del(namesOf('fenced-lock:', permitName(key, 0)).lease);
    const next = B.$withPermit(key, { permits: 1 }, (_, { token }) => token);
    expect(await next).toBeGreaterThan(old.token);
    await expect(old.held).rejects.toMatchObject({ code: expect.stringMatching(/LOCK_LOST|TRANSACTION_ABORTED/) });
  });

  test('operators see each permit, and take one from its holder', async () => {
    const key = someKey();
    const turns = [await working(A, key, 2), await working(B, key, 2)];
    const next = C.$withPermit(key, { permits: 2 }, (_, { permit }) => permit);
    await waits(key, 2, 1);
    const ours = (await prisma.$locks.list()).filter((state) => state.key.startsWith(key));
    expect(ours.map((state) => [state.key, state.waiting])).toEqual([0, 1].map((at) => [permitName(key, at), 1]));
    expect(await prisma.$locks.forceRelease(permitName(key, 1))).toBe(true);
    expect(await next).toBe(1);
    await expect(turns[1]?.held).rejects.toMatchObject({ code: expect.any(String) });
    await turns[0]?.end();
    expect((await prisma.$locks.history(permitName(key, 1))).turns).toBeGreaterThan(1n);
  });
});
