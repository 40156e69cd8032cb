import { expect, test } from 'vitest';
import type { LockTx } from '../../src/index.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';

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

  type Run = (key: string, work: () => Promise<void>) => Promise<unknown>;
  const ways: Array<[what: string, run: (prisma: ShopClient) => Run]> = [
    ['$withLock', (prisma) => (key, work) => prisma.$withLock(key, work)],
    ['$withLock of two keys', (prisma) => (key, work) => prisma.$withLock([key, `${key}:too`], work)],
    ['$oncePer', (prisma) => (key, work) => prisma.$oncePer(key, 3_600_000, work)],
  ];

  // If each reads a page of our index before the next one writes to it, the second cannot commit behind the third.
  test.each(ways)('Serializable lets %s of different keys commit in any order', async (_, run) => {
    const { prisma } = shop.client({ transactionOptions });
    const key = (await shop.product(1)).key;
    const doors: Array<() => void> = [];
    const calls: Promise<unknown>[] = [];
    for (const one of ['a', 'b', 'c']) {
      const [inside, goOn] = [gate(), gate()];
      const work = async () => {
        inside.open();
        await goOn.opened;
      };
      calls.push(run(prisma)(`${key}:${one}`, work));
      await Promise.race([inside.opened, calls.at(-1)]);
      doors.push(goOn.open);
    }
    for (const at of [2, 1, 0]) {
      doors[at]?.();
      await calls[at];
    }
  });
});
