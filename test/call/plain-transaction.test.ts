import { expect, test } from 'vitest';
import { LONGEST_TIME } from '../../src/base/clock.js';
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

  test('leaves how errors are written as it was', async () => {
    const { key } = await shop.product(1);
    const { stackTraceLimit, prepareStackTrace } = Error;
    await prisma.$withLock(key, () => 'sold');
    expect({ limit: Error.stackTraceLimit, prepare: Error.prepareStackTrace }).toEqual({
      limit: stackTraceLimit,
      prepare: prepareStackTrace,
    });
  });
});
