import { fakeLocks } from 'prisma-extension-fenced-lock/testing';
import { restock } from '../src/restock';

const stock = { update: jest.fn(async () => {}) };
const mockLocks = fakeLocks({ stock });
// A getter: Jest calls this before `mockLocks` is there.
jest.mock('../src/prisma', () => ({
  get prisma() {
    return mockLocks.prisma;
  },
}));

test('adds to the stock, under its key', async () => {
  await restock(1, 5);
  expect(stock.update).toHaveBeenCalledWith({ where: { id: 1 }, data: { quantity: { increment: 5 } } });
  expect(mockLocks.calls[0]?.keys).toEqual(['stock:1']);
});

test('passes on that the stock is busy', async () => {
  mockLocks.next('stock:1').timesOut();
  await expect(restock(1, 5)).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
});
