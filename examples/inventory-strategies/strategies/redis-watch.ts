import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { quantityIn, type Site, type Strategy } from './strategy.js';

/**
 * The stock is kept in Redis. WATCH makes EXEC do nothing if somebody has written the key since. Then the sale begins
 * again: under load most of them do, several times.
 */
export function redisWatch({ databaseUrl, redisUrl }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  const redis = new Redis(redisUrl);
  return {
    async sell({ stockId, buyer, think }) {
      // WATCH is of a connection: two sales on one connection would watch for each other.
      const own = redis.duplicate();
      try {
        for (;;) {
          await own.watch(quantityIn(stockId));
          const quantity = Number(await own.get(quantityIn(stockId)));
          if (quantity === 0) return 'sold out';
          await think();
          const done = await own
            .multi()
            .set(quantityIn(stockId), quantity - 1)
            .exec();
          if (done !== null) break;
        }
      } finally {
        own.disconnect();
      }
      // A process that is killed here has sold a unit for which there is no order.
      await prisma.order.create({ data: { stockId, buyer, quantity: 1 } });
      return 'sold';
    },
    async close() {
      redis.disconnect();
      await prisma.$disconnect();
    },
  };
}
