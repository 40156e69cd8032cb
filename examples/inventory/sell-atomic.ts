import { type ShopClient, type ShopTx, stockKey } from './client.js';
import { OutOfStockError } from './out-of-stock.js';

/** Sells `quantity` units. @returns how many are left. @throws OutOfStockError if there are not as many. */
export function sellAtomic(prisma: ShopClient, stockId: number, quantity: number): Promise<number> {
  return prisma.$withLock(stockKey(stockId), (tx) => takeFromStock(tx, stockId, quantity));
}

/** The decrement as one atomic update, for every function that already has the lock. */
export async function takeFromStock(tx: ShopTx, id: number, quantity: number): Promise<number> {
  const stock = await tx.stock.update({ where: { id }, data: { quantity: { decrement: quantity } } });
  // Too late is early enough: nobody else sees the row before the commit, and this error rolls it back.
  if (stock.quantity < 0) throw new OutOfStockError(id);
  return stock.quantity;
}
