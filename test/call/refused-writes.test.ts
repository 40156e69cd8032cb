import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { memoryStore, StaleTokenError } from '../../src/index.js';
import { RedisStore } from '../../src/redis/store.js';
import { Monitor } from '../redis/monitor.js';
import { eventually } from '../support/eventually.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { refusedWrite } from '../support/refused-write.js';
import { describeWithShop, Shop } from '../support/shop.js';

/** What somebody who looks from another process reads. */
function lookout(shop: Shop, keyPrefix: string): RedisStore {
  const store = new RedisStore(shop.redis(), { keyPrefix, commandTimeout: 5_000 }, () => {});
  shop.closeLater(() => store.close());
  return store;
}

describeWithShop('a refused stale write is noted for people', () => {
  const shop = new Shop();
  const setUp = async (name = 'worker 7') => {
    const keyPrefix = `refused-${randomUUID()}:`;
    const client = (options = {}) => shop.client({ keyPrefix, ...options }).prisma;
    const store = lookout(shop, keyPrefix);
    const noted = (count: number) =>
      eventually(`${count} are noted`, async () => {
        const refusals = await store.refusals();
        return refusals.length === count && refusals;
      });
    return { keyPrefix, client, late: client({ name }), noted, ...(await shop.product(10)) };
  };

  test('with its key, both tokens, the model and the name of its process; the caller has its own error', async () => {
    const { client, late, noted, id, key } = await setUp();
    const error = await refusedWrite(late, client(), id, key);
    expect(error).toBeInstanceOf(StaleTokenError);
    const { token, fence } = error as StaleTokenError;
    expect(await noted(1)).toEqual([
      {
        id: expect.any(String),
        key,
        token: String(token),
        fence: String(fence),
        model: 'Stock',
        reason: 'other-key',
        process: 'worker 7',
        ago: expect.any(Number),
      },
    ]);
    // What identifies it is to be seen neither in a log nor in a comparison.
    expect(Object.keys(error as object)).toEqual(Object.keys(new StaleTokenError('a', 1n, 'Stock')));
  });

  test('also if the function swallows the error, once for each attempt of a call, and once for a call inside another', async () => {
    const { client, late, noted, id, key } = await setUp();
    const early = client();
    const overtake = () =>
      early.$withLock(`${key}:other`, (tx) => tx.stock.update({ where: { id }, data: { quantity: 7 } }), {
        nested: 'allow',
      });
    const swallowed = late.$withLock(key, async (tx) => {
      await overtake();
      await tx.stock.update({ where: { id }, data: { quantity: 9 } }).catch(() => {});
      throw new RangeError('of the caller');
    });
    await expect(swallowed).rejects.toThrow(RangeError);
    await noted(1);
    let attempts = 0;
    const retried = late.$withLock(
      key,
      async (tx) => {
        // A run that was refused locks the row first, so nobody overtakes it.
        if (++attempts === 1) await overtake();
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
      },
      { retries: 1 },
    );
    await retried;
    await noted(2);
    const nested = late.$withLock(`${key}:outer`, () =>
      late.$withLock(
        key,
        async (tx) => {
          await overtake();
          await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        },
        { nested: 'allow' },
      ),
    );
    await expect(nested).rejects.toMatchObject({ code: 'STALE_TOKEN' });
    expect(new Set((await noted(3)).map((refusal) => refusal.id)).size).toBe(3);
  });

  test('also of a handle whose token has been superseded', async () => {
    const { late, noted, key } = await setUp();
    await using handle = await late.$lock(key);
    // Another room: the lease stands, and the handle has not heard of it.
    await shop.client({ keyPrefix: `another-${randomUUID()}:` }).prisma.$locks.forceRelease(key);
    await expect(handle.$transaction(() => {})).rejects.toMatchObject({ code: 'STALE_TOKEN', reason: 'superseded' });
    const [refusal] = await noted(1);
    expect(refusal).toMatchObject({ key, reason: 'superseded', process: 'worker 7', token: String(handle.token) });
    expect(refusal).not.toHaveProperty('model');
  });

  test('and nothing is sent to Redis for it where nothing is refused', async () => {
    const { keyPrefix, late, id, key } = await setUp();
    const monitor = await Monitor.start(inject('redis').url as string);
    for (let turn = 0; turn < 3; turn++) {
      await late.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: turn } }));
    }
    await late.$withLock(key, () => Promise.reject(new Error('of the caller'))).catch(() => {});
    expect((await monitor.about(`${keyPrefix}fenced-lock-refusals`)).length).toBe(0);
    monitor.stop();
  });

  test('for an hour after the last one', async () => {
    const { keyPrefix, client, late, noted, id, key } = await setUp();
    await refusedWrite(late, client(), id, key);
    await noted(1);
    const left = await shop.redis().pttl(`${keyPrefix}fenced-lock-refusals`);
    expect(left).toBeGreaterThan(3_500_000);
    expect(left).toBeLessThanOrEqual(3_600_000);
  });
});

describeWithRedis('a refused stale write that cannot be noted', (redis) => {
  const shop = new Shop(() => ({
    postgres: inject('postgres').app,
    admin: inject('postgres').admin,
    redis: redis().url,
  }));

  test('because the user may not do it is refused all the same, and nobody hears of the failure', async () => {
    const admin = shop.redis();
    await admin.call('ACL', 'SETUSER', 'timeless', 'reset', 'on', '>password', '~*', '&*', '+@all', '-time');
    const connection = shop.redis().duplicate({ username: 'timeless', password: 'password' });
    shop.closeLater(() => connection.disconnect());
    const late = shop.client({ redis: connection });
    const { id, key } = await shop.product(10);
    expect(await refusedWrite(late.prisma, shop.client().prisma, id, key)).toMatchObject({ code: 'STALE_TOKEN' });
    const log = async () => String(await admin.call('ACL', 'LOG'));
    await eventually('it was tried', async () => (await log()).includes('timeless'));
    // The client goes on as before.
    expect(await late.prisma.$withLock(key, () => 'well')).toBe('well');
    expect(late.events).toEqual([]);
  });

  test('because the client is not connected, or the store was closed, is not sent later either', async () => {
    const refusal = { id: randomUUID(), key: 'stock:1', token: '5', reason: 'other-key' };
    const keyPrefix = 'unconnected:';
    const connection = shop.redis();
    const store = new RedisStore(connection, { keyPrefix, commandTimeout: 5_000 }, () => {});
    connection.disconnect();
    await eventually('it has no connection', async () => connection.status === 'end');
    await store.noteRefusals([refusal]);
    await connection.connect();
    await connection.ping();
    expect(await connection.exists(`${keyPrefix}fenced-lock-refusals`)).toBe(0);
    await store.noteRefusals([refusal]);
    expect(await connection.exists(`${keyPrefix}fenced-lock-refusals`)).toBe(1);
    await connection.del(`${keyPrefix}fenced-lock-refusals`);
    await store.close();
    await store.noteRefusals([refusal]);
    expect(await connection.exists(`${keyPrefix}fenced-lock-refusals`)).toBe(0);
  });

  test('because Redis is silent is refused as soon as ever', async () => {
    const late = shop.client({ commandTimeout: 60_000, defaults: { leaseTime: 60_000 } }).prisma;
    const early = shop.client({ redis: memoryStore() }).prisma;
    const { id, key } = await shop.product(10);
    const refused = late.$withLock(key, async (tx) => {
      redis().freeze();
      const write = { where: { id }, data: { quantity: 7 } };
      await early.$withLock(`${key}:other`, (other) => other.stock.update(write), { nested: 'allow' });
      await tx.stock.update(write);
    });
    const error = await refused.catch((failure: unknown) => failure);
    redis().thaw();
    expect(error).toMatchObject({ code: 'STALE_TOKEN' });
  });
});
