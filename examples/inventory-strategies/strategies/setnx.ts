import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

/** SET NX with a time to live. The release deletes the lock, whosever it is by then. */
export function setnx({ databaseUrl, redisUrl, leaseTime }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  const redis = new Redis(redisUrl);
  return {
    async sell({ stockId, buyer, think }) {
      const lock = `setnx:${stockId}`;
      while ((await redis.set(lock, 'locked', 'PX', leaseTime, 'NX')) === null) await sleep(20 + Math.random() * 20);
      try {
        return await prisma.$transaction(
          async (tx) => {
            const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id: stockId } });
            if (quantity === 0) return 'sold out';
            await think();
            await tx.stock.update({ where: { id: stockId }, data: { quantity: quantity - 1 } });
            await tx.order.create({ data: { stockId, buyer, quantity: 1 } });
            return 'sold';
          },
          { maxWait: PATIENCE, timeout: PATIENCE },
        );
      } finally {
        await redis.del(lock);
      }
    },
    async close() {
      redis.disconnect();
      await prisma.$disconnect();
    },
  };
}
