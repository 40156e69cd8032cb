import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

/** A transaction and nothing else. At READ COMMITTED its read keeps nobody from writing. */
export function noLock({ databaseUrl }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  return {
    sell: ({ stockId, buyer, think }) =>
      prisma.$transaction(
        async (tx) => {
          const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id: stockId } });
          if (quantity === 0) return 'sold out';
          await think();
          await tx.stock.update({ where: { id: stockId }, data: { quantity: quantity - 1 } });
          await tx.order.create({ data: { stockId, buyer, quantity: 1 } });
          return 'sold';
        },
        { maxWait: PATIENCE, timeout: PATIENCE },
      ),
    close: () => prisma.$disconnect(),
  };
}
