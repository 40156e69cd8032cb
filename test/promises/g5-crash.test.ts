import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { isOpen, startHolder } from './holder.js';

describeWithShop('G5: a crash of the holder delays the others by its lease at most', () => {
  const shop = new Shop();

  const holder = (how: 'idle' | 'receiving') => startHolder(shop, inject('postgres').app, how);

  const sell = (id: number, key: string) =>
    shop
      .client()
      .prisma.$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }));

  test('SIGKILL: the next one goes on when the lease has run out, and finds nothing half done', async () => {
    const { worker, id, key } = await holder('idle');
    await worker.kill();
    expect((await sell(id, key)).quantity).toBe(9);
  });

  test('SIGSTOP in an idle transaction: the next one goes on, and the thawed holder cannot write', async () => {
    const { worker, id, key } = await holder('idle');
    worker.freeze();
    expect((await sell(id, key)).quantity).toBe(9);
    worker.thaw();
    worker.send({ type: 'go on' });
    expect((await worker.next('end'))['code']).not.toBe('committed');
    expect((await shop.row(id))?.quantity).toBe(9);
  });

  test.each(['idle', 'receiving'] as const)(
    'SIGSTOP, %s: Postgres ends it by itself, with nobody waiting',
    async (how) => {
      const { worker, key } = await holder(how);
      worker.freeze();
      await eventually('the transaction has ended', async () => !(await isOpen(shop, key)));
    },
  );

  test('a holder that is well and awaits something else is not ended, however long', async () => {
    const { id, key } = await shop.product(10);
    await shop.client().prisma.$withLock(
      key,
      async (tx, lock) => {
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        await new Promise((resolve) => setTimeout(resolve, 2 * 3_000));
        lock.signal.throwIfAborted();
        await tx.stock.update({ where: { id }, data: { quantity: 8 } });
      },
      { leaseTime: 3_000 },
    );
    expect((await shop.row(id))?.quantity).toBe(8);
  });
});
