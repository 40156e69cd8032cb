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
    /** Whether it had the key each time. */
    const always = async () => {
      for (let time = 0; time < TIMES; time++) {
        const tried = prisma.$tryWithLock(`free:${randomUUID()}`, () => time);
        for (const until = performance.now() + BLOCKED; performance.now() < until; );
        if (!(await tried).acquired) return false;
      }
      return true;
    };
    // On a busy machine that transaction may last longer than such a call waits for its end.
    for (let tries = 1; !(await always()); tries++) expect(tries).toBeLessThan(5);
  });
});
