import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
// In your project: 'prisma-extension-fenced-lock', and your own generated client.
import { FencedLockError, fencedLock } from '../../../src/index.js';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { fenceIn, PATIENCE, quantityIn, type Site, type Strategy } from './strategy.js';

/** Refuses a token below the fence. Compared as text: Lua's numbers are exact up to 2^53 only. */
const REFUSE_STALE = `
local fence, token = redis.call('GET', KEYS[2]) or '0', ARGV[1]
if #token < #fence or (#token == #fence and token < fence) then
  return redis.error_reply('STALE the token ' .. token .. ' is below the fence ' .. fence)
end
redis.call('SET', KEYS[2], token)`;

/** The read raises the fence, too. Else an older holder could still write between this read and its write. */
export const READ = `${REFUSE_STALE}
return redis.call('GET', KEYS[1])`;

export const WRITE = `${REFUSE_STALE}
return redis.call('SET', KEYS[1], ARGV[2])`;

/**
 * The stock is kept in Redis, and fenced there: Postgres draws the token of each holder, and two scripts compare it.
 * The quantity and the order are in two systems, and nothing makes the two of them one.
 */
export function redisFenced({ databaseUrl, redisUrl, leaseTime }: Site): Strategy {
  const redis = new Redis(redisUrl);
  const adapter = new PrismaPg({ connectionString: databaseUrl });
  const prisma = new PrismaClient({ adapter }).$extends(fencedLock({ redis }));
  return {
    async sell({ stockId, buyer, think }) {
      const stock = [quantityIn(stockId), fenceIn(stockId)] as const;
      // A handle, because its token is committed before anybody sees it. That of `$withLock` is not.
      const lock = await prisma.$lock(`stock:${stockId}`, { leaseTime, waitTime: PATIENCE });
      const token = String(lock.token);
      try {
        const quantity = Number(await redis.eval(READ, 2, ...stock, token));
        if (quantity === 0) return 'sold out';
        await think();
        await redis.eval(WRITE, 2, ...stock, token, quantity - 1);
        // A process that is killed here has sold a unit for which there is no order.
        await prisma.order.create({ data: { stockId, buyer, quantity: 1 } });
        return 'sold';
      } finally {
        await lock.release();
      }
    },
    isRefusal: (error) =>
      (error instanceof FencedLockError && error.code === 'LOCK_LOST') ||
      (error instanceof Error && error.message.startsWith('STALE')),
    async close() {
      await prisma.$disconnect();
      redis.disconnect();
    },
  };
}
