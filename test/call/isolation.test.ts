import { expect, test } from 'vitest';
import type { LockTx } from '../../src/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

const levelOf = async (tx: Pick<LockTx<ShopClient>, '$queryRaw'>) => {
  const [row] = await tx.$queryRaw<{ transaction_isolation: string }[]>`SHOW transaction_isolation`;
  return row?.transaction_isolation;
};

describeWithShop('the isolation level', () => {
  const shop = new Shop();
  const transactionOptions = { isolationLevel: 'Serializable' } as const;

  test("is that of the client's `transactionOptions`, as in its own transactions", async () => {
    const { prisma, plain } = shop.client({ transactionOptions });
    const { key } = await shop.product(1);
    expect(await plain.$transaction(levelOf)).toBe('serializable');
    expect(await prisma.$withLock(key, levelOf)).toBe('serializable');
    expect(await prisma.$withLock(key, levelOf, { retries: 1 })).toBe('serializable');
    const further = prisma.$extends({ name: 'another' });
    expect(await further.$withLock(key, levelOf)).toBe('serializable');
    await using handle = await prisma.$lock(key);
    expect(await handle.$transaction(levelOf)).toBe('serializable');
  });

  test('is that of the call, before that of `defaults`, before that of the client', async () => {
    const defaults = { isolationLevel: 'RepeatableRead' } as const;
    const { prisma } = shop.client({ transactionOptions, defaults });
    const { key } = await shop.product(1);
    expect(await prisma.$withLock(key, levelOf)).toBe('repeatable read');
    expect(await prisma.$withLock(key, levelOf, { isolationLevel: 'ReadCommitted' })).toBe('read committed');
  });

  test("is refused at once where the client's is none of Postgres", () => {
    const none = { isolationLevel: 'Snapshot' as 'Serializable' };
    expect(() => shop.client({ transactionOptions: none })).toThrow('`isolationLevel` must be one of ReadUncommitted');
  });
});
