import { expect, test } from 'vitest';
import { fencedLock, InvalidOptionError } from '../../src/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('an extension whose $transaction begins on the client that it was made for', () => {
  const shop = new Shop();

  function begunOnAnother(options: { models?: string[] }) {
    const { plain } = shop.client();
    const original = plain.$transaction as (...args: unknown[]) => unknown;
    const extended = plain.$extends({
      client: { $transaction: (...args: unknown[]) => original.apply(plain, args) },
    });
    return extended.$extends(fencedLock({ redis: shop.redis(), ...options })) as unknown as ShopClient;
  }

  test('is fenced all the same, because its connection is', async () => {
    const prisma = begunOnAnother({ models: [] });
    const { key } = await shop.product(10);
    const [{ token }] = await prisma.$withLock(
      key,
      (tx) => tx.$queryRaw<[{ token: string }]>`SELECT current_setting('fenced_lock.token') AS token`,
    );
    expect(BigInt(token)).toBeGreaterThan(0n);
    const ended = prisma.$withLock(key, (tx) => tx.$executeRawUnsafe('COMMIT'));
    await expect(ended).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
  });

  test('is refused where a fenced model has no guard: its writes would go past their condition', async () => {
    const prisma = begunOnAnother({});
    const { id, key } = await shop.product(10);
    let ran = false;
    const held = prisma.$withLock(key, async (tx) => {
      ran = true;
      await tx.stock.update({ where: { id }, data: { quantity: 9 } });
    });
    await expect(held).rejects.toMatchObject({ code: 'INVALID_OPTION', option: '$transaction' });
    expect(ran).toBe(false);
    // And it stands in nobody's way.
    expect(await shop.client().prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
  });

  test('is refused at once where it sends a statement before the function, which would come before the admission', async () => {
    const { plain } = shop.client();
    const tenant = plain.$extends({
      client: {
        $transaction: (work: (tx: unknown) => Promise<unknown>) =>
          plain.$transaction(async (tx) => {
            await tx.$executeRaw`SELECT set_config('app.tenant', '1', true)`;
            return await work(tx);
          }),
      },
    });
    const prisma = tenant.$extends(fencedLock({ redis: shop.redis(), models: [] })) as unknown as ShopClient;
    const { key } = await shop.product(10);
    await expect(prisma.$withLock(key, () => 'in')).rejects.toMatchObject({
      constructor: InvalidOptionError,
      option: '$transaction',
      message: expect.stringContaining('sends a statement before it calls its function'),
    });
    expect(await shop.client().prisma.$tryWithLock(key, () => 'in')).toEqual({ acquired: true, value: 'in' });
  });
});
