import { prisma } from './prisma';

/** Adds to a stock. It imports the client, where the other functions are given it. */
export async function restock(id: number, count: number): Promise<void> {
  await prisma.$withLock(`stock:${id}`, async (tx) => {
    await tx.stock.update({ where: { id }, data: { quantity: { increment: count } } });
  });
}
