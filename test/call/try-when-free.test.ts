import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';

/** Longer than a transaction that was begun ahead waits for its lease; ms. */
const BLOCKED = 30;
const TIMES = 40;

describeWithShop('a call that does not wait', () => {
  const shop = new Shop();

  test('has a free key, also where its event loop stood still and its first transaction was given up', async () => {
    const { prisma } = shop.client();
    for (let time = 0; time < TIMES; time++) {
      const tried = prisma.$tryWithLock(`free:${randomUUID()}`, () => time);
      for (const until = performance.now() + BLOCKED; performance.now() < until; );
      expect(await tried).toEqual({ acquired: true, value: time });
    }
  });
});
