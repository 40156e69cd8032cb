import { expect, inject, test } from 'vitest';
import type { LockOptions } from '../../src/index.js';
import { proxied } from '../support/proxied.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';

describeWithShop('callers of one process', () => {
  const shop = new Shop();

  /** Their database answers through a proxy; what they have heard so far. */
  async function callers() {
    const { prisma, proxy } = await proxied(shop, inject('postgres').app);
    const { id, key } = await shop.product(10);
    const heard: string[] = [];
    const sale = (caller: string, options: LockOptions = {}) =>
      prisma
        .$withLock(key, (tx) => tx.stock.update({ where: { id }, data: { quantity: { decrement: 1 } } }), options)
        .then(() => heard.push(caller));
    return { prisma, proxy, id, heard, sale };
  }

  test('hear in the order in which they asked, though the answer to the later COMMIT comes first', async () => {
    const { prisma, proxy, id, heard, sale } = await callers();
    const held = proxy.holdCommitReply();
    const sales = [sale('first'), sale('next')];
    const answered = gate();
    const remove = proxy.onData('toClient', (_, { commitReply }) => {
      if (commitReply) setImmediate(answered.open);
      return 'forward';
    });
    await held;
    await answered.opened;
    remove();
    // Whoever was told of that answer by now would have been heard of.
    expect(await shop.row(id)).toMatchObject({ quantity: 8 });
    await prisma.stock.count();
    expect(heard).toEqual([]);
    proxy.resume();
    await Promise.all(sales);
    expect(heard).toEqual(['first', 'next']);
  });

  test('hear of their own COMMIT, though that of the one before is not answered for long', async () => {
    const { proxy, id, heard, sale } = await callers();
    const held = proxy.holdCommitReply();
    // Longer than this test: nobody looks for its outcome meanwhile.
    const first = sale('first', { timeout: 600_000 });
    const next = sale('next');
    await held;
    await next;
    expect(heard).toEqual(['next']);
    expect(await shop.row(id)).toMatchObject({ quantity: 8 });
    proxy.resume();
    await first;
  });
});
