import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

/** The read locks the row. Each waiting sale holds a connection, and a frozen one keeps the row for as long as it is. */
export function forUpdate({ databaseUrl }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  return {
    sell: ({ stockId, buyer, think }) =>
      prisma.$transaction(
        async (tx) => {
          const [stock] = await tx.$queryRaw<[{ quantity: number }]>`
            SELECT "quantity" FROM "Stock" WHERE "id" = ${stockId} FOR UPDATE`;
          if (stock.quantity === 0) return 'sold out';
          await think();
          await tx.stock.update({ where: { id: stockId }, data: { quantity: stock.quantity - 1 } });
          await tx.order.create({ data: { stockId, buyer, quantity: 1 } });
          return 'sold';
        },
        { maxWait: PATIENCE, timeout: PATIENCE },
      ),
    close: () => prisma.$disconnect(),
  };
}
