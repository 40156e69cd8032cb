import { describe, expect, test, vi } from 'vitest';
import { fakeLocks } from '../../../../src/addons/testing/index.js';
import { type Client, closeDay, redeem, sell, transfer } from './shop.js';

/** The rows that the functions work on. */
function rows(...quantities: number[]) {
  const left = new Map(quantities.map((quantity, index) => [index + 1, quantity]));
  type Change = { where: { id: number }; data: { quantity: number | { increment: number } } };
  const stock = {
    findUniqueOrThrow: async ({ where }: Change) => ({ quantity: left.get(where.id) }),
    update: vi.fn(async ({ where, data: { quantity } }: Change) => {
      left.set(where.id, typeof quantity === 'number' ? quantity : (left.get(where.id) ?? 0) + quantity.increment);
    }),
  };
  const locks = fakeLocks<Client>({ stock, order: { count: async () => 3 } });
  return { left, stock, locks, prisma: locks.prisma };
}

describe('a sale', () => {
  test('of the last one: one buyer of two has it', async () => {
    const { prisma } = rows(1);
    expect(await Promise.all([sell(prisma, 1), sell(prisma, 1)])).toEqual(['sold', 'sold out']);
  });

  test('that waits too long is busy, and one whose outcome nobody knows is an error', async () => {
    const { locks, prisma } = rows(1);
    locks.next('stock:1').timesOut();
    expect(await sell(prisma, 1)).toBe('busy');
    locks.next('stock:1').hasUnknownOutcome();
    await expect(sell(prisma, 1)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
  });
});

describe('a transfer', () => {
  test('there and back at the same time does not hang, because both take the keys in one order', async () => {
    const { left, locks, prisma } = rows(10, 10);
    await Promise.all([transfer(prisma, 1, 2, 3), transfer(prisma, 2, 1, 5)]);
    expect([...left.values()]).toEqual([12, 8]);
    expect(locks.calls.map(({ keys }) => keys)).toEqual([
      ['stock:1', 'stock:2'],
      ['stock:1', 'stock:2'],
    ]);
  });

  test('that is stale writes nothing', async () => {
    const { left, locks, prisma } = rows(10, 10);
    locks.next().isStale();
    await expect(transfer(prisma, 1, 2, 3)).rejects.toMatchObject({ code: 'STALE_TOKEN' });
    expect([...left.values()]).toEqual([10, 10]);
  });
});

describe('a coupon', () => {
  test('that somebody redeems just now is not waited for', async () => {
    const { locks, prisma } = rows(1);
    const other = await locks.hold('coupon:1');
    expect(await redeem(prisma, 1)).toBe('try again');
    other.release();
    expect([await redeem(prisma, 1), await redeem(prisma, 1)]).toEqual(['redeemed', 'used up']);
  });

  test('whose lease is lost after the write is not redeemed, as far as the caller knows', async () => {
    const { locks, prisma } = rows(1);
    locks.next().isLost({ after: 2 });
    await expect(redeem(prisma, 1)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });
});

describe('the job of the night', () => {
  test('runs once, and again when it failed', async () => {
    const { locks, prisma } = rows();
    locks.next('nightly').isRolledBack();
    await expect(closeDay(prisma)).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' });
    expect([await closeDay(prisma), await closeDay(prisma)]).toEqual([3, 'done']);
  });
});
