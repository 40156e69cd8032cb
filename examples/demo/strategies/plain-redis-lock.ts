import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { sellOne } from '../sale.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

/** Deletes the lock if it is still this holder's, and never another's. */
const UNLOCK = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`;

/**
 * The lock that is in use everywhere, with nothing wrong in it: SET NX PX, a holder's id, an owner check in Lua. It
 * is not renewed; that would change nothing here, because a frozen process renews nothing either.
 */
export function plainRedisLock({ databaseUrl, redisUrl, key, leaseTime }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  const redis = new Redis(redisUrl);
  const name = `plain:${key}`;
  return {
    async sell(sale) {
      const holder = randomUUID();
      while ((await redis.set(name, holder, 'PX', leaseTime, 'NX')) === null) await sleep(50 + Math.random() * 50);
      try {
        return await prisma.$transaction((tx) => sellOne(tx, sale), { timeout: PATIENCE });
      } finally {
        await redis.eval(UNLOCK, 1, name, holder);
      }
    },
    isRefusal: () => false,
    async close() {
      redis.disconnect();
      await prisma.$disconnect();
    },
  };
}
