import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { PrismaClient } from '../../../test/generated/prisma/client.js';
import { PATIENCE, type Site, type Strategy } from './strategy.js';

const EXTEND = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`;

const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  return redis.call('PUBLISH', KEYS[1], 'free')
end
return 0`;

/**
 * The way of Redisson: a watchdog extends the lease at a third of its time, and waiters sleep until a release is
 * published. A frozen process runs no watchdog either.
 */
export function watchdog({ databaseUrl, redisUrl, leaseTime }: Site): Strategy {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: databaseUrl }) });
  const redis = new Redis(redisUrl);
  const subscriber = new Redis(redisUrl);
  subscriber.setMaxListeners(0);

  async function lock(name: string, owner: string): Promise<void> {
    await subscriber.subscribe(name);
    for (;;) {
      // Listen before the try: a release between the two would be missed.
      const stop = new AbortController();
      const released = once(subscriber, 'message', { signal: stop.signal }).catch(() => {});
      if ((await redis.set(name, owner, 'PX', leaseTime, 'NX')) !== null) return stop.abort();
      const left = await redis.pttl(name);
      const timer = setTimeout(() => stop.abort(), Math.max(left, 1));
      await released;
      clearTimeout(timer);
    }
  }

  return {
    async sell({ stockId, buyer, think }) {
      const name = `watchdog:${stockId}`;
      const owner = randomUUID();
      await lock(name, owner);
      const timer = setInterval(
        () => void redis.eval(EXTEND, 1, name, owner, leaseTime).catch(() => {}),
        leaseTime / 3,
      );
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
        clearInterval(timer);
        await redis.eval(RELEASE, 1, name, owner);
      }
    },
    async close() {
      redis.disconnect();
      subscriber.disconnect();
      await prisma.$disconnect();
    },
  };
}
