import { expect, test } from 'vitest';
import { currentTx } from '../../src/index.js';
import { atWork, describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('a function that goes on after its lock was aborted', () => {
  const shop = new Shop();

  interface Way {
    readonly by: string;
    readonly timeout?: number;
    /** Does it; a timeout comes by itself. */
    abort?(holder: AbortController, key: string): unknown;
    readonly error: object;
  }
  const ways: readonly Way[] = [
    {
      by: 'its signal',
      abort: (holder) => holder.abort(new Error('given up')),
      error: { message: 'given up' },
    },
    { by: 'its timeout', timeout: 500, error: { code: 'TRANSACTION_ABORTED', reason: 'timeout' } },
    {
      by: 'an operator who takes its key',
      abort: (_, key) => shop.client().prisma.$locks.forceRelease(key),
      error: { code: 'TRANSACTION_ABORTED', reason: 'connection' },
    },
  ];

  test.each(ways)(
    'by $by is still inside of it: what it calls is refused, and nothing of it runs without the lock',
    async ({ timeout, abort, error }) => {
      const { id, key } = await shop.product(10);
      const { prisma } = shop.client();
      const [begun, aborted] = [gate(), gate()];
      const holder = new AbortController();
      const results: unknown[] = [];
      const over = gate();
      const data = { quantity: 0 };
      const held = prisma.$withLock(
        key,
        async () => {
          begun.open();
          await aborted.opened;
          const attempts = [
            () => currentTx(prisma, { outside: 'client' }).stock.update({ where: { id }, data }),
            () => prisma.stock.update({ where: { id }, data }),
            () => prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data })),
          ];
          for (const attempt of attempts)
            results.push(
              await Promise.resolve()
                .then(attempt)
                .then(String, () => 'refused'),
            );
          over.open();
        },
        { signal: holder.signal, timeout },
      );
      await begun.opened;
      const rejected = expect(held).rejects.toMatchObject(error);
      await abort?.(holder, key);
      await rejected;
      // The transaction of the database client has ended, too: the next holder is admitted.
      await shop.client().prisma.$withLock(key, () => {});
      aborted.open();
      await over.opened;
      expect(results).toEqual(['refused', 'refused', 'refused']);
      expect((await shop.row(id))?.quantity).toBe(10);
    },
  );

  test('by its signal in the middle of a statement: rejects with that very reason, and what it wrote is rolled back', async () => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client();
    const caller = new AbortController();
    const reason = new Error('given up');
    let told: unknown;
    const held = prisma.$withLock(
      key,
      async (tx, lock) => {
        await tx.stock.update({ where: { id }, data: { quantity: 0 } });
        const asleep = tx.$queryRaw`SELECT pg_sleep(20)::text`;
        caller.abort(reason);
        told = lock.signal.reason;
        await asleep;
      },
      { signal: caller.signal },
    );
    await expect(held).rejects.toBe(reason);
    expect(told).toBe(reason);
    expect(await prisma.$withLock(key, (tx) => tx.stock.findUnique({ where: { id } }))).toMatchObject({ quantity: 10 });
  });

  test('by one signal for all calls: they all end, and there is no warning of a leak', async () => {
    const { key } = await shop.product(1);
    const { prisma } = shop.client();
    const warnings: Error[] = [];
    const heard = (warning: Error) => void warnings.push(warning);
    process.on('warning', heard);
    const shutdown = new AbortController();
    const { signal } = shutdown;
    const { held: holder } = await atWork(prisma, key, () => {}, { signal });
    const waiting = Array.from({ length: 50 }, () => prisma.$withLock(key, () => 'in', { signal }));
    shutdown.abort(new Error('shutting down'));
    const ends = await Promise.allSettled([holder, ...waiting]);
    expect(ends.map((end) => end.status === 'rejected' && (end.reason as Error).message)).toEqual(
      Array.from({ length: 51 }, () => 'shutting down'),
    );
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', heard);
    expect(warnings).toEqual([]);
  });
});
