import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test, vi } from 'vitest';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
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

describeWithShop('a call that is turned away at once', () => {
  const shop = new Shop();

  const REFUSED: Record<string, (client: ShopClient, key: string) => Promise<unknown>> = {
    'because its signal has aborted': (client, key) =>
      codeOf(client.$withLock(key, () => {}, { signal: AbortSignal.abort({ code: 'given up' }) })),
    'because the client is being closed': async (client, key) => {
      const closing = client.$locks.close();
      const end = await codeOf(client.$withLock(key, () => {}));
      await closing;
      return end;
    },
  };

  test.each(Object.entries(REFUSED))('takes no connection: %s', async (_, call) => {
    const connectionString = inject('postgres').app;
    const pool = new pg.Pool({ connectionString });
    const taken = vi.spyOn(pool, 'connect');
    const plain = new PrismaClient({ adapter: new PrismaPg(pool) });
    shop.closeLater(() => plain.$disconnect().then(() => pool.end()));
    const rescue = new PrismaPg({ connectionString });
    const client = plain.$extends(fencedLock({ redis: shop.redis(), rescue }));
    await plain.$connect();
    expect(await call(client, `at once ${randomUUID()}`)).toMatch(/given up|CLOSED/);
    // The refused call would have asked for one before this.
    await plain.$transaction(async () => {});
    expect(taken).toHaveBeenCalledTimes(1);
  });
});
