import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { forget } from './handle-work.js';

describeWithShop('a holder whose transaction is ended by somebody else, while its function waits', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  /** How the transaction is ended, and by whom. */
  const WAYS: Record<string, (key: string) => Promise<unknown>> = {
    'by the next holder, after a flush': async (key) => {
      await forget(shop, key);
      await shop.client().prisma.$withLock(key, () => {});
    },
    'by an operator': (key) => shop.client().prisma.$locks.forceRelease(key),
    'by an administrator': async (key) => {
      const { transaction } = await prisma.$locks.inspect(key);
      await shop.admin.query('SELECT pg_terminate_backend($1)', [transaction?.pid]);
    },
  };

  /** At work under a new key, in the middle of a transaction. No renewal finds the lease gone before the end of the test. */
  async function atWork() {
    const { id, key } = await shop.product(10);
    // From its second turn on a key has a row that others see.
    await prisma.$withLock(key, () => {});
    const [inside, goOn] = [gate<AbortSignal>(), gate()];
    let work: Promise<unknown> | undefined;
    const held = prisma.$withLock(
      key,
      (tx, lock) => {
        const working = async () => {
          await tx.stock.update({ where: { id }, data: { quantity: 0 } });
          inside.open(lock.signal);
          await goOn.opened;
          await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        };
        const ended = working();
        work = ended.catch((error: unknown) => error);
        return ended;
      },
      { leaseTime: 60_000 },
    );
    const outcome = held.catch((error: unknown) => error);
    const signal = await inside.opened;
    return { id, key, outcome, signal, goOn: () => goOn.open(), work };
  }

  test.each(Object.entries(WAYS))(
    '%s: rejects at once, its signal aborts, and nothing is written later',
    async (_, end) => {
      const { id, key, outcome, signal, goOn, work } = await atWork();
      await end(key);
      const error = await outcome;
      expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', reason: 'connection', key, cause: { code: '57P01' } });
      expect((error as Error).message).toMatch(
        /somebody asked for that \(57P01: pg_terminate_backend, .*or a shutdown/,
      );
      expect(signal.reason).toBe(error);
      goOn();
      expect(await work).toMatchObject({ code: 'CLOSED' });
      expect((await shop.row(id))?.quantity).toBe(10);
      await eventually('the key is free', async () => (await prisma.$locks.inspect(key)).holder === undefined);
    },
  );
});
