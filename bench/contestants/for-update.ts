import type { PrismaClient } from '../../test/generated/prisma/client.js';
import { type Contestant, nothing, type Sale } from './contestant.js';

/** The read is what locks, so there is no statement more than in the bare transaction. */
export async function sellForUpdate(prisma: PrismaClient, { id, began, ended, releases }: Sale): Promise<void> {
  await prisma.$transaction(async (tx) => {
    const [stock] = await tx.$queryRaw<[{ quantity: number }]>`
      SELECT "quantity" FROM "Stock" WHERE "id" = ${id} FOR UPDATE`;
    await began?.();
    await tx.stock.update({ where: { id }, data: { quantity: stock.quantity - 1 } });
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
