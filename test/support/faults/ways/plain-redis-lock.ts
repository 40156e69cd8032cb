import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Site } from '../messages.js';
import type { plainClient } from './client.js';
import { NotAcquired, TIMES, type Way } from './way.js';

/** Deletes the lock if it is still this holder's, and never another's. */
const UNLOCK = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`;

/** SET NX PX, a holder's id, an owner check in Lua, and Prisma's own transaction: the lock alone. */
export function plainRedisLock({ redis: site }: Site, prisma: ReturnType<typeof plainClient>): Way {
  if (site === 'memory' || site.kind !== 'single') throw new Error('this way knows one Redis only');
  const redis = new Redis(site.url);
  redis.on('error', () => {});
  return {
    mostKeys: 1,
    run: ({ keys: [key = ''], leaseTime, random, operate }) =>
      operate(async (work) => {
        const holder = randomUUID();
        const name = `plain:${key}`;
        const until = performance.now() + TIMES.waitTime;
        while ((await redis.set(name, holder, 'PX', leaseTime, 'NX')) === null) {
          if (performance.now() > until) throw new NotAcquired();
          await sleep(random.whole(5, 20));
        }
        try {
          // It has no token; one that rises keeps the checker's other rules out of the way.
          await prisma.$transaction((tx) => work(tx, process.hrtime.bigint()), { timeout: TIMES.timeout });
        } finally {
          await redis.eval(UNLOCK, 1, name, holder).catch(() => {});
        }
      }),
  };
}
