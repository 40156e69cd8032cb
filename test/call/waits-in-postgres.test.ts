import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { LockTimeoutError } from '../../src/index.js';
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

describeWithShop('who waited in vain is told who has the key', () => {
  const shop = new Shop();

  async function timedOut(prisma: ReturnType<Shop['client']>['prisma'], key: string): Promise<LockTimeoutError> {
    const error: unknown = await prisma.$withLock(key, () => {}, { waitTime: 1_500 }).catch((failure) => failure);
    expect(error).toBeInstanceOf(LockTimeoutError);
    return error as LockTimeoutError;
  }

  test('another process: its name, since when it was seen, and when its lease ends', async () => {
    const { key } = await shop.product(10);
    const { goOn } = await atWork(shop.client({ name: 'web-1:4711' }).prisma, key);
    const began = Date.now();
    const error = await timedOut(shop.client({ name: 'web-2:9' }).prisma, key);
    goOn();
    expect(error.holder).toBe('web-1:4711');
    expect(error.since?.getTime()).toBeGreaterThan(began - 2);
    expect(error.since?.getTime()).toBeLessThanOrEqual(Date.now());
    expect(error.expiresIn).toBeGreaterThan(0);
    expect(error.expiresIn).toBeLessThanOrEqual(5_000);
    expect(error.message).toMatch(
      /was not free within 1500 ms\. It has been held by web-1:4711 for at least \d+ ms; its lease ends in \d+ ms unless it is renewed\. .*raise `waitTime`/,
    );
  });

  test('a handle of the same process is said to be one, and what to call on it', async () => {
    const { key } = await shop.product(10);
    const { prisma } = shop.client({ name: 'web-1:4711' });
    const handle = await prisma.$lock(key);
    const error = await timedOut(prisma, key);
    expect(error).toMatchObject({ holder: 'web-1:4711', key });
    expect(error.message).toMatch(
      / A handle of this process \(web-1:4711\) has had it for \d+ ms\. .*its `\$transaction`\./,
    );
    // And no longer when the handle has ended.
    await handle.release();
    const { goOn } = await atWork(prisma, key);
    expect((await timedOut(prisma, key)).message).toContain('Another caller of this process');
    goOn();
  });
});
