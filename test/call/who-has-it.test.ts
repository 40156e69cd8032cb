import { expect, test } from 'vitest';
import { LockTimeoutError } from '../../src/index.js';
import { atWork, describeWithShop, Shop } from '../support/shop.js';

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
