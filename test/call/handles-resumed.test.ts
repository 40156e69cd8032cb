import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { aroundScripts } from '../support/around-scripts.js';
import { eventually } from '../support/eventually.js';
import { redisProxied } from '../support/proxied.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { turnOfLoop } from '../waiting/actors.js';
import { type Handle, registered, sellOne } from './handle-work.js';

describeWithShop('a handle that is handed on', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  const journey = (lock: Handle) => JSON.parse(JSON.stringify(lock)) as ReturnType<Handle['toJSON']>;

  test('while the old one finds out between the transfers of two keys, and is released: it keeps the second one for it', async () => {
    const [redis, own] = [shop.redis(), shop.redis()];
    const [first, second] = [gate(), gate()];
    let transfers = 0;
    aroundScripts(redis, async ({ name, send }) => {
      if (name === 'transfer' && ++transfers === 2) await second.opened;
      const answer = await send();
      if (name === 'transfer') first.open();
      return answer;
    });
    const products = [await shop.product(10), await shop.product(10)] as const;
    const keys = products.map(({ key }) => key) as [string, ...string[]];
    const holder = shop.client({ redis: own }).prisma;
    const lock = await holder.$lock(keys);
    lock.signal.addEventListener('abort', () => void lock.release());
    const begun: string[] = [];
    const resuming = shop.client({ redis }).prisma.$resumeLock(journey(lock));
    await first.opened;
    const waiters = keys.map((key) => holder.$withLock(key, () => begun.push(key), { waitTime: 50_000 }));
    await eventually('the old one knows', async () => lock.signal.aborted);
    // Behind all that the old one would send now.
    await turnOfLoop();
    await own.ping();
    second.open();
    const resumed = await resuming;
    for (const { id } of products) await sellOne(resumed, id);
    expect(begun).toEqual([]);
    await resumed.release();
    await Promise.all(waiters);
    await lock.release();
  });

  test('and is released before its transfer: who waits behind it works under a lease of its own, and the resume is refused', async () => {
    const redis = shop.redis();
    const [registered, released] = [gate(), gate()];
    aroundScripts(redis, async ({ name, send }) => {
      if (name === 'transfer') {
        registered.open();
        await released.opened;
      }
      return await send();
    });
    const { id, key } = await shop.product(10);
    const holder = shop.client().prisma;
    const lock = await holder.$lock(key);
    const works = gate();
    const waiter = holder.$withLock(
      key,
      async (tx) => {
        works.open();
        await resuming.catch(() => {});
        await tx.stock.update({ where: { id }, data: { quantity: 5 } });
      },
      { waitTime: 50_000 },
    );
    const resuming = shop.client({ redis }).prisma.$resumeLock(journey(lock), { waitTime: 500 });
    resuming.catch(() => {});
    await registered.opened;
    await lock.release();
    await works.opened;
    released.open();
    await expect(resuming).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'gone' });
    await waiter;
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  test('is refused where another holder has been admitted meanwhile', async () => {
    const { id, key } = await shop.product(10);
    const lock = await prisma.$lock(key);
    const state = journey(lock);
    await lock.release();
    const { token } = await shop.client().prisma.$withLock(key, (_, held) => held);
    await expect(prisma.$resumeLock(state)).rejects.toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded' });
    expect((await registered(shop, key))?.token).toBe(token);
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('is refused where its lease has ended, though nobody has come since', async () => {
    const { key } = await shop.product(10);
    const lock = await prisma.$lock(key);
    const state = journey(lock);
    await lock.release();
    await eventually('the lease is gone', async () => (await shop.redis().keys(`*${key}*`)).length === 0);
    await expect(prisma.$resumeLock(state)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'gone', key });
  });

  test('is refused in another name, or with another token, than it is registered with', async () => {
    const { id, key } = await shop.product(10);
    const lock = await prisma.$lock(key);
    const state = journey(lock);
    const forged = [
      { ...state, holders: [randomUUID()] },
      { ...state, tokens: [String(lock.token + 1n)] },
      { ...state, tokens: ['9223372036854775807'] },
      { ...state, keys: [`${key} never used`] },
    ];
    for (const one of forged) await expect(prisma.$resumeLock(one)).rejects.toMatchObject({ code: 'STALE_TOKEN' });
    await sellOne(lock, id);
    await lock.release();
  });

  test('while Redis does not answer stays with the old one, and can be resumed later', async () => {
    const { key } = await shop.product(1);
    const lock = await shop.client().prisma.$lock(key);
    const successor = await redisProxied(shop, { commandTimeout: 500 });
    await successor.prisma.$locks.inspect(key);
    successor.proxy.silence();
    const resuming = successor.prisma.$resumeLock(lock.toJSON(), { waitTime: 300 });
    await expect(resuming).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', key });
    expect(await lock.$transaction(() => 'still in')).toBe('still in');
    const later = await shop.client().prisma.$resumeLock(lock.toJSON());
    expect(await later.$transaction(() => 'in')).toBe('in');
    await later.release();
  });
});
