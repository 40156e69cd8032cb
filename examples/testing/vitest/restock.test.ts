import { expect, test, vi } from 'vitest';
import { restock } from '../src/restock';

const { locks, stock } = await vi.hoisted(async () => {
  const { fakeLocks } = await import('prisma-extension-fenced-lock/testing');
  const stock = { update: vi.fn(async () => {}) };
  return { stock, locks: fakeLocks({ stock }) };
});
vi.mock('../src/prisma', () => ({ prisma: locks.prisma }));

test('adds to the stock, under its key', async () => {
  await restock(1, 5);
  expect(stock.update).toHaveBeenCalledWith({ where: { id: 1 }, data: { quantity: { increment: 5 } } });
  expect(locks.calls[0]?.keys).toEqual(['stock:1']);
});

test('passes on that the stock is busy', async () => {
  locks.next('stock:1').timesOut();
  await expect(restock(1, 5)).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
});
