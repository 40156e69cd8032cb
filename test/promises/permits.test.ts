import { expect, inject, test } from 'vitest';
import { permitName } from '../../src/base/permits.js';
import { namesOf } from '../../src/redis/names.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { PERMITS, told, turns, workers } from './permits-at-work.js';

describeWithShop('permits: never more than so many at work, by the account of Postgres', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test('of three processes, frozen, killed and with Redis flushed in between', { timeout: 60_000 }, async () => {
    const { key, all } = await workers(4, { kind: 'single', url: inject('redis').url as string });
    const [frozen, killed, ...others] = all;
    const { lease, queue } = namesOf('fenced-lock:', permitName(key, 0));
    const redis = shop.redis();
    for (let round = 0; round < 5; round++) {
      frozen.freeze();
      await turns(others[0], 10);
      await redis.del(lease, queue);
      frozen.thaw();
      await turns(others[1], 10);
      if (round === 2) await killed.kill();
    }
    const { most } = await told([frozen, ...others]);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(PERMITS);
  });

  test('that of a holder that is killed is free after its lease', async () => {
    const { key, all } = await workers(2, { kind: 'single', url: inject('redis').url as string });
    await turns(all[0], 3);
    await all[0].kill();
    await all[1].kill();
    const numbers = await Promise.all(
      Array.from({ length: PERMITS }, async () => {
        const handle = await prisma.$permit(key, { permits: PERMITS });
        return handle.permit;
      }),
    );
    expect(numbers.toSorted()).toEqual([0, 1, 2]);
  });
});
