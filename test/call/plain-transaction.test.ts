import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { LONGEST_TIME } from '../../src/base/clock.js';
import { fencedLock } from '../../src/index.js';
import { PrismaClient } from '../generated/prisma/client.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a lock inside a plain interactive transaction', () => {
  const shop = new Shop();
  const { prisma, plain } = shop.client();

  /** Time enough to tell a refusal from the end of the transaction's time. */
  const options = { timeout: LONGEST_TIME };

  const CALLS: Record<string, (key: string) => Promise<unknown>> = {
    $withLock: (key) => prisma.$withLock(key, () => 'sold'),
    $tryWithLock: (key) => prisma.$tryWithLock(key, () => 'sold'),
    $lock: (key) => prisma.$lock(key),
  };

  test.each(Object.entries(CALLS))('%s is refused at once, also behind awaits', async (method, call) => {
    const { key } = await shop.product(1);
    const sell = async (depth: number): Promise<unknown> => {
      await prisma.stock.count();
      return depth === 0 ? await call(key) : await sell(depth - 1);
    };
    const message = expect.stringMatching(
      new RegExp(`${method.replace('$', '\\$')}.*on your client \\(\`prisma\`\\), not on \`tx\``),
    );
    const refused = { code: 'INSIDE_TRANSACTION', key, message };
    await expect(prisma.$transaction(() => call(key), options)).rejects.toMatchObject(refused);
    await expect(prisma.$transaction(() => sell(20), options)).rejects.toMatchObject(refused);
    await expect(prisma.$transaction(() => Promise.all([sell(1), sell(2)]), options)).rejects.toMatchObject(refused);
    await expect(prisma.$extends({}).$transaction(() => sell(1), options)).rejects.toMatchObject(refused);
    await expect(plain.$transaction(() => sell(1), options)).rejects.toMatchObject(refused);
  });

  test('is had beside it, after it, and where the caller allows it', async () => {
    const { key } = await shop.product(1);
    const [begun, had] = [gate(), gate<string>()];
    begun.opened.then(() => prisma.$withLock(key, () => had.open('beside')));
    await prisma.$transaction(async () => {
      begun.open();
      expect(await had.opened).toBe('beside');
    });
    expect(await prisma.$withLock(key, () => 'after')).toBe('after');
    const allowed = await prisma.$transaction(() => prisma.$withLock(key, () => 'allowed', { nested: 'allow' }));
    expect(allowed).toBe('allowed');
  });

  const { app: connectionString } = inject('postgres');
  function poolOf(): pg.Pool {
    const pool = new pg.Pool({ connectionString });
    shop.closeLater(() => pool.end());
    return pool;
  }

  /** From the first lock on, only the transactions that are open are known, and the stack is not searched for others. */
  test.each<[string, () => PrismaPg, 'connected' | 'not connected']>([
    ['a client', () => new PrismaPg({ connectionString }), 'not connected'],
    ['a client with a pool of the caller’s', () => new PrismaPg(poolOf()), 'not connected'],
    ['a client whose adapter has no pool of pg', () => new PoollessPg({ connectionString }), 'not connected'],
    ['a client that had connected before its extension', () => new PrismaPg({ connectionString }), 'connected'],
  ])('is refused each time, whatever locks there were before: %s', async (_, adapterOf, connected) => {
    const base = new PrismaClient({ adapter: adapterOf() });
    shop.closeLater(() => base.$disconnect());
    if (connected === 'connected') {
      await base.$connect();
      await base.stock.count();
    }
    const own = base.$extends(fencedLock({ redis: shop.redis() }));
    const { id, key } = await shop.product(10);
    const sell = (client: typeof own) =>
      client.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));
    const refused = { code: 'INSIDE_TRANSACTION', key };
    for (let time = 0; time < 3; time++) {
      await expect(own.$transaction(() => sell(own), options)).rejects.toMatchObject(refused);
      await expect(base.$transaction(() => sell(own), options)).rejects.toMatchObject(refused);
      const further = own.$extends({}) as unknown as typeof own;
      await expect(further.$transaction(() => sell(further), options)).rejects.toMatchObject(refused);
      await sell(own);
    }
    expect((await shop.row(id))?.quantity).toBe(7);
  });
});
