import { expect, test } from 'vitest';
import type { LockTx } from '../../src/index.js';
import { describeWithShop, Shop, type ShopClient } from '../support/shop.js';

type Tx = LockTx<ShopClient>;

describeWithShop('a transaction whose connection is closed while its function runs', () => {
  const shop = new Shop();

  /** Ends the session from outside, as a shutdown of the server does, then goes on. */
  async function endedBefore(tx: Tx, id: number): Promise<void> {
    const [session] = await tx.$queryRaw<Array<{ pid: number }>>`SELECT pg_backend_pid() AS pid`;
    await shop.admin.query('SELECT pg_terminate_backend($1, 5000)', [session?.pid]);
    await tx.stock.update({ where: { id }, data: { quantity: 5 } });
  }

  test('is said to be rolled back, with what Postgres said, and not by an error of the driver', async () => {
    const { id, key } = await shop.product(10);
    const held = shop.client().prisma.$withLock(key, (tx) => endedBefore(tx, id));
    const message = expect.stringMatching(/rolled back.*57P01/s);
    await expect(held).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', key, message });
    expect((await shop.row(id))?.quantity).toBe(10);
  });

  test('rejects with the own error of the function, if it threw one', async () => {
    const { id, key } = await shop.product(10);
    const held = shop.client().prisma.$withLock(key, async (tx) => {
      await endedBefore(tx, id).catch(() => {
        throw new Error('sold out');
      });
    });
    await expect(held).rejects.toThrow('sold out');
    expect((await shop.row(id))?.quantity).toBe(10);
  });
});
