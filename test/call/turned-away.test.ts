import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';
import { blockRows, named } from './waits-in-postgres.js';

/** Both ways to close the locks of a client. */
const WAYS: Record<string, (client: ShopClient) => Promise<void>> = {
  $disconnect: (client) => client.$disconnect(),
  '$locks.close': (client) => client.$locks.close(),
};

/** Longer than a test: whoever gets on did not get on because that was over. */
const waitTime = 60_000;
const codeOf = (call: Promise<unknown>) => call.catch((error: { code?: string }) => error.code ?? error);

describeWithShop('a call whose turn has come, and that waits in Postgres', () => {
  const shop = new Shop();

  test.each(Object.entries(WAYS))(
    '%s turns it away, whatever it is, and its function never begins',
    async (_, close) => {
      const { prisma, waits } = named(shop);
      const keys = Array.from({ length: 4 }, () => `turned away ${randomUUID()}`) as [string, string, string, string];
      for (const key of keys.slice(2)) await prisma.$withLock(key, () => {});
      const owner = shop.client().prisma;
      const [lock, other] = [await prisma.$lock(keys[0]), await owner.$lock(keys[1])];
      const letGo = await blockRows(shop, ...keys);
      const begun: string[] = [];
      const calls = [
        prisma.$withLock(keys[3], () => begun.push('a call'), { waitTime }),
        prisma.$lock(keys[2], { waitTime }),
        lock.$transaction(() => begun.push('the transaction of a handle'), { waitTime }),
        prisma.$resumeLock(other.toJSON(), { waitTime }),
      ].map(codeOf);
      await waits(4);
      await close(prisma);
      expect(await Promise.all(calls)).toEqual(calls.map(() => 'CLOSED'));
      await letGo();
      expect(begun).toEqual([]);
      // What was turned away has taken nothing from anybody.
      await other.$transaction(() => begun.push('the old handle'));
      expect(begun).toEqual(['the old handle']);
      await other.release();
    },
  );
});
