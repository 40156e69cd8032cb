import { expect, test } from 'vitest';
import type { LockTx } from '../../src/index.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('the stack of an error', () => {
  const shop = new Shop();

  async function theCallersFunction(call: () => Promise<unknown>): Promise<unknown> {
    return await call();
  }

  const CALLS: Record<string, (prisma: ShopClient, key: string) => Promise<unknown>> = {
    $withLock: (prisma, key) => prisma.$withLock(key, () => {}, { waitTime: 400 }),
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

  const MISTAKES: Record<string, (tx: LockTx<ShopClient>, prisma: ShopClient, id: number) => Promise<unknown>> = {
    'a write on the client': (_, prisma, id) => prisma.stock.update({ where: { id }, data: { quantity: 9 } }),
    'COMMIT in raw SQL': (tx) => tx.$executeRawUnsafe('COMMIT'),
    'a lock on tx': (tx, _, id) => (tx as unknown as ShopClient).$withLock(`stock:${id}`, () => {}),
  };

  test.each(Object.entries(MISTAKES))(
    'of what must not be called inside names who called it: %s',
    async (_, mistake) => {
      const { id, key } = await shop.product(1);
      const { prisma } = shop.client();
      const failed = (await prisma
        .$withLock(key, async (tx) => {
          await theCallersFunction(() => mistake(tx, prisma, id));
        })
        .catch((error: unknown) => error)) as Error;
      expect(failed).toMatchObject({ code: 'INSIDE_TRANSACTION' });
      expect(failed.stack?.match(/theCallersFunction/g)).toHaveLength(1);
    },
  );
});
