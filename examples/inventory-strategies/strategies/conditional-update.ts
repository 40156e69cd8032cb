import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import type { Site, Strategy } from './strategy.js';

/** Read, rule and write in one statement, so there is no middle to be frozen in. The rule has to fit into SQL. */
export function conditionalUpdate({ databaseUrl }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  return {
    async sell({ stockId, buyer, think }) {
      await think();
      const orders = await prisma.$executeRaw`
        WITH sold AS (
          UPDATE "Stock" SET "quantity" = "quantity" - 1 WHERE "id" = ${stockId} AND "quantity" > 0 RETURNING "id"
        )
        INSERT INTO "Order" ("stockId", "buyer", "quantity") SELECT "id", ${buyer}, 1 FROM sold`;
      return orders === 1 ? 'sold' : 'sold out';
    },
    close: () => prisma.$disconnect(),
  };
}
