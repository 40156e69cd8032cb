import { expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

const LEASE = 1_000;

describeWithShop('G5: a crash of the holder delays the others by its lease at most', () => {
  const shop = new Shop();

  /** A holder in a process of its own that has written its row and not committed. */
  async function holder(how: 'idle' | 'receiving') {
    const product = await shop.product(10);
    // The key's row is there before, so that others can see whether it is held.
    await shop.client().prisma.$withLock(product.key, () => {});
    const { app } = inject('postgres');
    const args = [app, inject('redis').url as string, product.key, String(product.id), how, String(LEASE)];
    const worker = startWorker(new URL('./holder.worker.ts', import.meta.url), args);
    shop.closeLater(() => worker.stop());
    await worker.next('inside');
    expect(await isOpen(product.key)).toBe(true);
    return { worker, ...product };
  }

  /** Whether the key's row in Postgres is still held by a transaction. */
  async function isOpen(key: string): Promise<boolean> {
    const { rowCount } = await shop.admin.query(
      'SELECT 1 FROM fenced_lock.admission WHERE key = $1 FOR UPDATE SKIP LOCKED',
      [key],
    );
    return rowCount === 0;
  }

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

  test('SIGSTOP in an idle transaction: Postgres ends it by itself, with nobody waiting', async () => {
    const { worker, key } = await holder('idle');
    worker.freeze();
    await eventually('the transaction has ended', async () => !(await isOpen(key)));
  });

  test('SIGSTOP while a large result is being sent: Postgres ends it by itself, with nobody waiting', async () => {
    const { worker, key } = await holder('receiving');
    await eventually('the result is on its way', async () => {
      const { rowCount } = await shop.admin.query(
        "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT repeat(%'",
      );
      return rowCount === 1;
    });
    worker.freeze();
    await eventually('the transaction has ended', async () => !(await isOpen(key)));
  });

  test('a holder that is well and awaits something else is not ended, however long', async () => {
    const { id, key } = await shop.product(10);
    await shop.client().prisma.$withLock(
      key,
      async (tx, lock) => {
        await tx.stock.update({ where: { id }, data: { quantity: 9 } });
        await new Promise((resolve) => setTimeout(resolve, 3 * 300));
        lock.signal.throwIfAborted();
        await tx.stock.update({ where: { id }, data: { quantity: 8 } });
      },
      { leaseTime: 300 },
    );
    expect((await shop.row(id))?.quantity).toBe(8);
  });
});
