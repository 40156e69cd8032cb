import { expect, test } from 'vitest';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('the stack of an error', () => {
  const shop = new Shop();

  async function theCallersFunction(call: () => Promise<unknown>): Promise<unknown> {
    return await call();
  }

  const CALLS: Record<string, (prisma: ShopClient, key: string) => Promise<unknown>> = {
    $withLock: (prisma, key) => prisma.$withLock(key, () => {}, { waitTime: 400 }),
    'a later key of $withLock': (prisma, key) => prisma.$withLock(['a', key], () => {}, { waitTime: 400 }),
    $lock: (prisma, key) => prisma.$lock(key, { waitTime: 400 }),
  };

  test.each(Object.entries(CALLS))('that was made by a timer names the caller: %s', async (_, call) => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    await prisma.$withLock(`${key} of nobody`, () => {});
    await using held = await shop.client().prisma.$lock(key);
    const failed = await theCallersFunction(async () => await call(prisma, key)).catch((error: Error) => error);
    expect(failed).toMatchObject({
      code: 'LOCK_TIMEOUT',
      stack: expect.stringContaining('theCallersFunction'),
    });
    expect(failed).toMatchObject({ stack: expect.stringMatching(/giveUp/) });
    expect(held.key).toBe(key);
  });

  test('of work that was ended names the caller, once', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const never = gate();
    const endless = () => theCallersFunction(() => prisma.$withLock(key, () => never.opened, { timeout: 50 }));
    const failed = (await endless().catch((error: unknown) => error)) as Error;
    expect(failed).toMatchObject({ code: 'TRANSACTION_ABORTED' });
    expect(failed.stack?.match(/theCallersFunction/g)).toHaveLength(1);
    const handle = await prisma.$lock(key);
    const late = theCallersFunction(() => handle.$transaction(() => never.opened, { timeout: 50 }));
    await expect(late).rejects.toMatchObject({ stack: expect.stringContaining('theCallersFunction') });
    await handle.release();
  });

  test("of the function's own error stays what it was", async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const own = new Error('sold out');
    const { stack } = own;
    await expect(prisma.$withLock(key, () => Promise.reject(own))).rejects.toBe(own);
    expect(own.stack).toBe(stack);
  });
});
