import { expect, onTestFinished, test } from 'vitest';
import { recordLockHistory, TransactionAbortedError } from '../../src/index.js';
import { atWork, describeWithShop, Shop, type ShopClient } from '../support/shop.js';

describeWithShop('$locks.history', () => {
  const shop = new Shop();
  const turn = (prisma: ShopClient, key: string) => prisma.$withLock(key, (_, lock) => lock.token);

  test('with a recorder has the turns of this process with token, process, duration and outcome', async () => {
    const { key } = await shop.product(1);
    const process = 'sales 1';
    const { prisma } = shop.client({ name: process });
    const before = await turn(prisma, key);
    const stop = recordLockHistory();
    onTestFinished(stop);
    const first = await turn(prisma, key);
    const failing = prisma.$withLock(key, () => {
      throw new RangeError('of the caller');
    });
    await expect(failing).rejects.toThrow(RangeError);
    const last = await turn(prisma, key);
    const history = await prisma.$locks.history(key);
    expect(history).toMatchObject({ key, turns: 3n, recorded: true });
    const own = { process, operation: '$withLock', duration: expect.any(Number), admittedAt: expect.any(Date) };
    expect(history.last).toMatchObject([
      { ...own, turn: 3n, token: last, outcome: 'committed', inPostgres: true },
      { ...own, outcome: 'rolled-back', inPostgres: false, error: 'RangeError' },
      { ...own, turn: 2n, token: first, outcome: 'committed', inPostgres: true },
      { turn: 1n, token: undefined, process: undefined, outcome: 'committed', inPostgres: true },
    ]);
    expect(history.last[1]?.token).toBeGreaterThan(before);
    stop();
    expect((await prisma.$locks.history(key)).last).toHaveLength(3);
  });

  test('says why a turn was rolled back, and has the turns of a handle and of several keys', async () => {
    const { key } = await shop.product(1);
    const [prisma, operator] = [shop.client().prisma, shop.client().prisma];
    onTestFinished(recordLockHistory());
    const { held: working } = await atWork(prisma, key);
    const lost = expect(working).rejects.toThrow(TransactionAbortedError);
    await prisma.$locks.forceRelease(key);
    await lost;
    const handle = await operator.$lock([key, `${key}:b`]);
    await handle.$transaction(() => {});
    await handle.release();
    for (const each of [key, `${key}:b`]) {
      const { last } = await operator.$locks.history(each);
      expect(last.slice(0, 2)).toMatchObject([
        { operation: 'handle.$transaction', inPostgres: true, token: expect.any(BigInt) },
        { operation: '$lock', inPostgres: true },
      ]);
    }
    const { last } = await operator.$locks.history(key);
    expect(last.find(({ outcome }) => outcome === 'rolled-back')).toMatchObject({ error: 'TRANSACTION_ABORTED' });
  });
});
