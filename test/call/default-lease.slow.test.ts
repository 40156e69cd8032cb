import { expect, inject, test } from 'vitest';
import { DEFAULTS } from '../../src/options/options.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { startWorker } from '../support/worker.js';

const HOLDER = new URL('../promises/holder.worker.ts', import.meta.url);

/** Nothing else of this process runs meanwhile: no renewal, no answer is read. */
function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describeWithShop('the default options', () => {
  const shop = new Shop();

  const decrement = (id: number) => ({ where: { id }, data: { quantity: { decrement: 1 } } });

  test('after a SIGKILL of the holder, who waits gets the key within the default wait time', async () => {
    const { id, key } = await shop.product(10);
    const times = String(DEFAULTS.leaseTime);
    const args = [inject('postgres').app, inject('redis').url as string, key, String(id), 'idle', times];
    const holder = startWorker(HOLDER, args);
    await holder.next('inside');
    const { prisma } = shop.client();
    const contenders = Array.from({ length: 5 }, () => prisma.$withLock(key, (tx) => tx.stock.update(decrement(id))));
    await holder.kill();
    await Promise.all(contenders);
    expect((await shop.row(id))?.quantity).toBe(5);
  });

  test('an event loop that is blocked for 2 s keeps its lock', async () => {
    const { id, key } = await shop.product(10);
    await shop.client().prisma.$withLock(key, async (tx) => {
      await tx.stock.update(decrement(id));
      block(2_000);
      await tx.stock.update(decrement(id));
    });
    expect((await shop.row(id))?.quantity).toBe(8);
  });

  test('one that is blocked for longer than the lease hears LOCK_LOST, and writes nothing', async () => {
    const { id, key } = await shop.product(10);
    const { prisma } = shop.client();
    const held = prisma.$withLock(key, async (tx) => {
      await tx.stock.update(decrement(id));
      block(DEFAULTS.leaseTime + 1_000);
      await tx.stock.update(decrement(id));
    });
    await expect(held).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired', key });
    expect((await shop.row(id))?.quantity).toBe(10);
    await prisma.$withLock(key, (tx) => tx.stock.update(decrement(id)));
    expect((await shop.row(id))?.quantity).toBe(9);
  });
});
