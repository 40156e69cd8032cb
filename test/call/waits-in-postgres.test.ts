import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { atWork, describeWithShop, Shop, sale } from '../support/shop.js';
import { blockRows, lookedForBlockers } from './waits-in-postgres.js';

describeWithShop('two waiting rooms, of two values of keyPrefix, and one key', () => {
  const shop = new Shop();

  /** The prefix may also be that of the client of ioredis. */
  const ROOMS = {
    keyPrefix: () => shop.client({ keyPrefix: `${randomUUID()}:` }),
    "the client's keyPrefix": () => {
      const redis = new Redis(inject('redis').url as string, { keyPrefix: `${randomUUID()}:` });
      shop.closeLater(() => redis.disconnect());
      return shop.client({ redis });
    },
  };

  /** At work in its own room, until it is told to go on. */
  async function working() {
    const { id, key } = await shop.product(10);
    const holder = shop.client();
    await holder.prisma.$withLock(key, () => {});
    return { id, key, ...(await atWork(holder.prisma, key, sale(id))) };
  }

  test.each(Object.entries(ROOMS))(
    '%s: the one waits for the other, who is well, and gets its turn',
    async (_, room) => {
      const { id, key, held, goOn } = await working();
      const contender = room();
      const next = contender.prisma.$withLock(key, sale(id));
      await lookedForBlockers(shop);
      goOn();
      expect(await held).toBe(9);
      expect(await next).toBe(8);
      expect(contender.events).toEqual([]);
    },
  );

  test('who waits for too long is told what is in its way', async () => {
    const { key, held, goOn } = await working();
    const contender = shop.client({ keyPrefix: `${randomUUID()}:` }).prisma;
    await expect(contender.$withLock(key, () => {}, { waitTime: 1_200 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      key,
      message: expect.stringContaining('of another waiting room (another keyPrefix'),
    });
    expect(await contender.$tryWithLock(key, () => {})).toEqual({ acquired: false });
    goOn();
    expect(await held).toBe(9);
  });
});

describeWithShop('a role whose statement_timeout is shorter than an admission waits', () => {
  const shop = new Shop();
  test('is told so in LOCK_TIMEOUT when its wait time is over', async () => {
    const key = `hasty ${randomUUID()}`;
    await shop.client().prisma.$withLock(key, () => {});
    await blockRows(shop, key);
    const { prisma } = shop.client({ pool: { options: '-c statement_timeout=200' } });
    const call = prisma.$withLock(key, () => 'in', { waitTime: 500 });
    await expect(call).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      key,
      message: expect.stringContaining('`statement_timeout` of the role'),
    });
  });
});
