import { type ShopClient, stockKey } from './client.js';
import { takeFromStock } from './sell-atomic.js';

export interface Purchase {
  readonly stockId: number;
  readonly buyer: string;
  readonly quantity: number;
}

/**
 * An order and its units, both or neither: one lock is one transaction.
 *
 * @returns the order's id. @throws OutOfStockError
 */
export function sellWithOrder(prisma: ShopClient, { stockId, buyer, quantity }: Purchase): Promise<number> {
  return prisma.$withLock(stockKey(stockId), async (tx) => {
    const order = await tx.order.create({ data: { stockId, buyer, quantity } });
    // If this throws, the order is rolled back with it.
    await takeFromStock(tx, stockId, quantity);
    return order.id;
  });
}
