import type { PrismaClient } from '../../test/generated/prisma/client.js';
import { type Contestant, nothing, placeOrder, type Sale } from './contestant.js';

/** The read is what locks, so there is no statement more than in the bare transaction. */
export async function sellForUpdate(prisma: PrismaClient, sale: Sale): Promise<void> {
  const { id, buyer, began, hasRead, ended, releases } = sale;
  await prisma.$transaction(async (tx) => {
    const [stock] = await tx.$queryRaw<[{ quantity: number }]>`
      SELECT "quantity" FROM "Stock" WHERE "id" = ${id} FOR UPDATE`;
    await began?.();
    if (hasRead !== undefined) await hasRead();
    await tx.stock.update({ where: { id }, data: { quantity: stock.quantity - 1 } });
    if (buyer !== undefined) await placeOrder(tx, id, buyer);
    ended?.();
  });
  releases?.();
}

export const forUpdate: Contestant = {
  name: 'FOR UPDATE',
  waits: 'postgres',
  shop: 'plain',
  open: ({ prisma }) => ({ sell: (sale) => sellForUpdate(prisma, sale), close: nothing }),
};
