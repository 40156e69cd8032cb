import { expect, test } from 'vitest';
import { LockLostError } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { describeWithShop, gate, Shop, type ShopClient } from '../support/shop.js';
import { forget } from './handle-work.js';

describeWithShop('a holder whose transaction is ended by somebody else', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  /** How the holder loses its key, to whom, and that its transaction has been ended for that. */
  const WAYS: Record<string, (key: string) => Promise<unknown>> = {
    'by the next holder, after a flush': async (key) => {
      await forget(shop, key);
      await shop.client().prisma.$withLock(key, () => {});
    },
    'by an operator': (key) => shop.client().prisma.$locks.forceRelease(key),
  };

  /** At work under a new key, in the middle of a transaction that nobody else would end. */
  async function atWork(then: (write: () => Promise<unknown>) => Promise<unknown>, fresh = false) {
    const { id, key } = await shop.product(10);
    // From its second turn on a key has a row that others see.
    await prisma.$withLock(key, () => {});
    const [inside, goOn] = [gate(), gate()];
    // One that has not asked yet which tables have a guard asks before its first write.
    const client = fresh ? shop.client().prisma : prisma;
    const work = async (tx: Pick<ShopClient, 'stock'>) => {
      const write = () => tx.stock.update({ where: { id }, data: { quantity: 0 } });
      await (fresh ? tx.stock.findUniqueOrThrow({ where: { id } }) : write());
      inside.open();
      await goOn.opened;
      return await then(write);
    };
    // So long that no renewal is the first to find the lease gone.
    const held = client.$withLock(key, work, { leaseTime: 60_000 });
    const outcome = held.catch((error: unknown) => error);
    await inside.opened;
    return { id, key, outcome, goOn: () => goOn.open() };
  }

  test.each(Object.entries(WAYS))(
    '%s: its next statement rejects with LOCK_LOST, which says so',
    async (_, overtake) => {
      const { id, key, outcome, goOn } = await atWork((write) => write());
      await overtake(key);
      goOn();
      const error = await outcome;
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ code: 'LOCK_LOST', reason: 'overtaken', key, cause: expect.any(Error) });
      const { message } = error as Error;
      expect(message).toContain('another holder or an operator has ended its transaction');
      expect(message).toContain('The transaction was rolled back: run it again.');
      expect(message).not.toContain('leaseTime');
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  test.each(Object.entries(WAYS))('%s: its first write, behind a read, rejects with the same', async (_, overtake) => {
    const { key, outcome, goOn } = await atWork((write) => write(), true);
    await overtake(key);
    goOn();
    expect(await outcome).toMatchObject({ code: 'LOCK_LOST', reason: 'overtaken', key });
  });

  test.each(Object.entries(WAYS))('%s: its COMMIT rejects with the same', async (_, overtake) => {
    const { id, key, outcome, goOn } = await atWork(async () => 'done');
    await overtake(key);
    goOn();
    expect(await outcome).toMatchObject({ code: 'LOCK_LOST', reason: 'overtaken', key });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test.each(Object.entries(WAYS))(
    '%s: it hears the same where its function swallows the error',
    async (_, overtake) => {
      const { key, outcome, goOn } = await atWork((write) => write().catch(() => {}));
      await overtake(key);
      goOn();
      expect(await outcome).toMatchObject({ code: 'LOCK_LOST', reason: 'overtaken', key });
    },
  );

  test('by an operator, in the middle of a statement: hears the same, though its lease is taken only later', async () => {
    const { key } = await shop.product(10);
    await prisma.$withLock(key, () => {});
    const held = prisma.$withLock(key, (tx) => tx.$queryRaw`SELECT pg_sleep(25)::text AS until_it_is_ended`, {
      leaseTime: 60_000,
    });
    const outcome = held.catch((error: unknown) => error);
    await eventually('it is at work', async () => {
      const { rowCount } = await shop.admin.query(
        "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND position('until_it_is_ended' IN query) > 0",
      );
      return rowCount === 1;
    });
    await shop.client().prisma.$locks.forceRelease(key);
    expect(await outcome).toMatchObject({ code: 'LOCK_LOST', reason: 'overtaken', key });
  });

  test('an error of its own stays its own, also one that looks like that', async () => {
    const own = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    const { key, outcome, goOn } = await atWork(() => Promise.reject(own));
    await forget(shop, key);
    goOn();
    expect(await outcome).toBe(own);
  });

  test('by an administrator, before its COMMIT: TRANSACTION_ABORTED says that somebody has ended it', async () => {
    const { key, outcome, goOn } = await atWork(async () => 'done');
    const { transaction } = await prisma.$locks.inspect(key);
    await shop.admin.query('SELECT pg_terminate_backend($1, 2000)', [transaction?.pid]);
    goOn();
    const error = await outcome;
    expect(error).toMatchObject({ code: 'TRANSACTION_ABORTED', cause: { code: '57P01' } });
    expect((error as Error).message).toMatch(/somebody asked for that \(57P01: pg_terminate_backend, .*or a shutdown/);
  });

  test('by an administrator or a restart: keeps its lease, and the error is that of its connection', async () => {
    const ended = async (key: string) => {
      const { transaction } = await prisma.$locks.inspect(key);
      await shop.admin.query('SELECT pg_terminate_backend($1, 2000)', [transaction?.pid]);
    };
    for (const then of [(write: () => Promise<unknown>) => write(), async () => 'done']) {
      const { id, key, outcome, goOn } = await atWork(then);
      await ended(key);
      goOn();
      const error = await outcome;
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toMatchObject({ code: 'LOCK_LOST' });
      expect((await shop.row(id))?.quantity).toBe(10);
      await eventually('the key is free', async () => (await prisma.$locks.inspect(key)).holder === undefined);
    }
  });
});
