import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

/** The same with an owner: the release looks whose lock it is. Between GET and DEL it may become another's. */
export function setnxOwner({ databaseUrl, redisUrl, leaseTime }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  const redis = new Redis(redisUrl);
  return {
    async sell({ stockId, buyer, think }) {
      const lock = `setnx-owner:${stockId}`;
      const owner = randomUUID();
      while ((await redis.set(lock, owner, 'PX', leaseTime, 'NX')) === null) await sleep(20 + Math.random() * 20);
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
        if ((await redis.get(lock)) === owner) await redis.del(lock);
      }
    },
    async close() {
      redis.disconnect();
      await prisma.$disconnect();
    },
  };
}
