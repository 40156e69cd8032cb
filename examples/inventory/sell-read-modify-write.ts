import { type ShopClient, stockKey } from './client.js';
import { OutOfStockError } from './out-of-stock.js';

/** What a sale leaves in stock; whatever your rules are. A rule that needs the row cannot be one atomic update. */
export type Rule = (quantity: number) => number | Promise<number>;

/**
 * Reads the row, works out the new quantity in TypeScript, writes it back. Without the lock this is the classic
 * lost update; under it nobody can have written between the read and the write.
 */
export function sellReadModifyWrite(prisma: ShopClient, id: number, rule: Rule): Promise<number> {
  return prisma.$withLock(stockKey(id), async (tx) => {
    // Read inside the lock, and by `tx`: what was read before it may be old by now.
    const stock = await tx.stock.findUniqueOrThrow({ where: { id } });
    const quantity = await rule(stock.quantity);
    if (quantity < 0) throw new OutOfStockError(id);
    await tx.stock.update({ where: { id }, data: { quantity } });
    return quantity;
  });
}
