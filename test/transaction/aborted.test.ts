import { test } from 'vitest';
import { aroundScripts } from '../support/around-scripts.js';
import { describeWithShop, Shop } from '../support/shop.js';

describeWithShop('a strike', () => {
  const shop = new Shop();

  test('at whatever moment after the lease is had leaves no connection behind', async () => {
    const redis = shop.redis();
    // Each call looks in Redis: none finds what the one before it has kept.
    const { prisma } = shop.client({ redis, pool: { max: 1 }, passOnAfter: 0 });
    const { key } = await shop.product(10);
    await prisma.$withLock(key, () => {});
    let answered = () => {};
    aroundScripts(redis, async ({ send }) => {
      const answer = await send();
      answered();
      return answer;
    });
    for (let steps = 0; steps < 60; steps++) {
      const abort = new AbortController();
      answered = () => void later(steps).then(() => abort.abort(new Error('struck')));
      await prisma.$withLock(key, () => {}, { signal: abort.signal }).catch(() => {});
      answered = () => {};
      await prisma.$withLock(key, () => {}, { maxWait: 2_000 });
    }
  });
});

/** So many microtasks later. */
async function later(steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) await undefined;
}
