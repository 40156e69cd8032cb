import { expect, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a strike', () => {
  const shop = new Shop();

  test('while the last question before COMMIT is under way still forbids it', async () => {
    const { id, key } = await shop.product(10);
    const abort = new AbortController();
    const held = shop.client().prisma.$withLock(
      key,
      async (tx) => {
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        await tx.stock.findUniqueOrThrow({ where: { id: -1 } }).catch(() => {});
        // Behind all that follows at once, and before any answer of Postgres.
        setImmediate(() => abort.abort(new Error('no sale')));
      },
      { signal: abort.signal },
    );
    await expect(held).rejects.toThrow('no sale');
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('at whatever moment after the lease is had leaves no connection behind', async () => {
    const redis = shop.redis();
    const { prisma } = shop.client({ redis, pool: { max: 1 } });
    const { key } = await shop.product(10);
    await prisma.$withLock(key, () => {});
    const evalsha = redis.evalsha.bind(redis) as (...args: unknown[]) => Promise<unknown>;
    for (let steps = 0; steps < 60; steps++) {
      const abort = new AbortController();
      Object.defineProperty(redis, 'evalsha', {
        configurable: true,
        value: async (...args: unknown[]) => {
          const answer = await evalsha(...args);
          void later(steps).then(() => abort.abort(new Error('struck')));
          return answer;
        },
      });
      await prisma.$withLock(key, () => {}, { signal: abort.signal }).catch(() => {});
      Object.defineProperty(redis, 'evalsha', { configurable: true, value: evalsha });
      await prisma.$withLock(key, () => {}, { maxWait: 2_000 });
    }
  });
});

/** So many microtasks later. */
async function later(steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) await undefined;
}
