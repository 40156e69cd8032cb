import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { describeWithShop, Shop } from '../support/shop.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

describeWithShop('after its end', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  /** A work's own, which lives as long as its transaction is remembered. */
  async function goodsOf(end: () => void): Promise<WeakRef<object>> {
    const goods = { sold: 1 };
    await prisma.$withLock('goods', (tx) => tx.$queryRaw`SELECT ${goods.sold}`.then(end)).catch(() => {});
    return new WeakRef(goods);
  }

  const ENDS = {
    committed: () => {},
    'rolled back': () => {
      throw new Error('no sale');
    },
  };

  test.each(Object.entries(ENDS))('nothing is kept of a transaction that was %s', async (_, end) => {
    const goods = await goodsOf(end);
    await eventually('it has been collected', async () => {
      collect();
      return goods.deref() === undefined;
    });
    expect(goods.deref()).toBeUndefined();
  });
});
