/** Where a sale works: a client, a transaction's client or a lock's, whichever the strategy has. */
export interface SaleClient {
  readonly stock: {
    findUniqueOrThrow(args: { where: { id: number } }): PromiseLike<{ quantity: number }>;
    update(args: { where: { id: number }; data: { quantity: number } }): PromiseLike<unknown>;
  };
  readonly order: {
    create(args: { data: { stockId: number; buyer: string; quantity: number } }): PromiseLike<unknown>;
  };
}

export interface Sale {
  readonly stockId: number;
  readonly buyer: string;
  /** Between the read and the write: the shop thinks, and one worker is frozen. */
  inTheMiddle(): Promise<void>;
}

export type SaleResult = 'sold' | 'sold out';

/** Read, think, write: the same for every strategy, so that they differ in the lock alone. */
export async function sellOne(client: SaleClient, { stockId, buyer, inTheMiddle }: Sale): Promise<SaleResult> {
  const stock = await client.stock.findUniqueOrThrow({ where: { id: stockId } });
  if (stock.quantity === 0) return 'sold out';
  await inTheMiddle();
  await client.stock.update({ where: { id: stockId }, data: { quantity: stock.quantity - 1 } });
  await client.order.create({ data: { stockId, buyer, quantity: 1 } });
  return 'sold';
}
