import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, test } from 'vitest';
import { StaleTokenError } from '../../../src/index.js';
import { CLIENT_KINDS, ofKind } from '../../support/client-kinds.js';
import { describeWithShop, Shop, type ShopClient } from '../../support/shop.js';

type Tx = Pick<ShopClient, 'stock'>;
const FRESHER = 9_000_000_000_000_000_000n;

const WRITES = {
  'update, with a relation in its condition': (tx: Tx, product: string) =>
    tx.stock.update({ where: { product, orders: { none: { quantity: 5 } } }, data: { quantity: 9 } }),
  'delete, with a selection': (tx: Tx, product: string) =>
    tx.stock.delete({ where: { product }, select: { id: true } }),
};

/** A connection that calls `then` when the look for a fresher row was answered, and hands on the answer afterwards. */
function pausingBehindTheLook(then: () => Promise<void>): typeof pg.Client {
  return class extends pg.Client {
    override query(...args: [never]): never {
      const query = args[0] as { text?: string; handleReadyForQuery?(): void };
      const answered = query.handleReadyForQuery?.bind(query);
      if (answered !== undefined && /^SELECT .*"fence" > \$/.test(query.text ?? '')) {
        query.handleReadyForQuery = () => void then().then(answered);
      }
      return super.query(...args) as never;
    }
  };
}

describeWithShop('a fresher row that comes behind a claim which met none', () => {
  const shop = new Shop();

  const each = CLIENT_KINDS.flatMap((kind) =>
    Object.entries(WRITES).map(([name, write]) => [name, kind, write] as const),
  );

  test.each(each)('is not met by the write, which is refused as stale: %s, %s client', async (_, kind, write) => {
    const product = randomUUID();
    let came = 0;
    const Client = pausingBehindTheLook(async () => {
      // The claim's look for a fresher row is the last that comes before the write.
      if (++came > 1) return;
      await shop.admin.query('INSERT INTO "Stock" (product, quantity, fence) VALUES ($1, 50, $2)', [product, FRESHER]);
    });
    const prisma = ofKind(kind, shop.client({ pool: { Client } as pg.PoolConfig }).prisma);
    await expect(prisma.$withLock(product, (tx) => write(tx, product))).rejects.toBeInstanceOf(StaleTokenError);
    // The look behind the write has found it.
    expect(came).toBe(2);
    const { rows } = await shop.admin.query('SELECT quantity, fence FROM "Stock" WHERE product = $1', [product]);
    expect(rows).toEqual([{ quantity: 50, fence: String(FRESHER) }]);
  });
});
