import { PrismaPg } from '@prisma/adapter-pg';
import { expect, inject, test } from 'vitest';
import { LONGEST_TIME } from '../../src/base/clock.js';
import { PoollessPg } from '../support/poolless-pg.js';
import { describeWithShop, gate, Shop, type ShopClient, sale } from '../support/shop.js';

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

  /** From the first lock on, only the transactions that are open are known, and the stack is not searched for others. */
  test.each<[string, () => PrismaPg, 'connected' | 'not connected']>([
    ['a client', () => new PrismaPg({ connectionString }), 'not connected'],
    ['a client with a pool of the caller’s', () => new PrismaPg(shop.pool()), 'not connected'],
    ['a client whose adapter has no pool of pg', () => new PoollessPg({ connectionString }), 'not connected'],
    ['a client that had connected before its extension', () => new PrismaPg({ connectionString }), 'connected'],
  ])('is refused each time, whatever locks there were before: %s', async (_, adapterOf, connected) => {
    const base = shop.unextended(adapterOf());
    if (connected === 'connected') {
      await base.$connect();
      await base.stock.count();
    }
    const own = shop.extend(base);
    const { id, key } = await shop.product(10);
    const sell = (client: ShopClient) => client.$withLock(key, sale(id));
    const refused = { code: 'INSIDE_TRANSACTION', key };
    for (let time = 0; time < 3; time++) {
      await expect(own.$transaction(() => sell(own), options)).rejects.toMatchObject(refused);
      await expect(base.$transaction(() => sell(own), options)).rejects.toMatchObject(refused);
      const further = own.$extends({}) as unknown as ShopClient;
      await expect(further.$transaction(() => sell(further), options)).rejects.toMatchObject(refused);
      await sell(own);
    }
    expect((await shop.row(id))?.quantity).toBe(7);
  });

  test('is refused where the transaction was begun before a lock fenced its pool', async () => {
    const plain = shop.unextended(new PrismaPg({ connectionString }));
    // The client connects before the extension is applied.
    await plain.stock.count();
    const prisma = shop.extend(plain);
    const [begun, goOn] = [gate(), gate()];
    const { key } = await shop.product(1);
    const outer = plain.$transaction(async () => {
      begun.open();
      await goOn.opened;
      return await prisma.$withLock(key, () => 'inside');
    });
    await begun.opened;
    expect(await prisma.$withLock(`${key} beside`, () => 'beside')).toBe('beside');
    goOn.open();
    await expect(outer).rejects.toMatchObject({ code: 'INSIDE_TRANSACTION' });
  });
});
