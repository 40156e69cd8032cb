import { createLock, IoredisAdapter } from 'redlock-universal';
import { type Contestant, nothing, WAIT_TIME, work } from './contestant.js';

const RETRY_DELAY = 100;

/** `using`, with its default pause, and as many of them as the wait time has room for. */
export const redlockUniversal: Contestant = {
  name: 'redlock-universal',
  waits: 'redis',
  shop: 'plain',
  open({ prisma, redis, leaseTime }) {
    const adapter = new IoredisAdapter(redis);
    return {
      sell: (sale) =>
        createLock({
          adapter,
          key: `redlock-universal:${sale.key}`,
          ttl: leaseTime,
          retryDelay: RETRY_DELAY,
          retryAttempts: WAIT_TIME / RETRY_DELAY,
        }).using(async (signal) => {
          await prisma.$transaction((tx) => work(tx, sale, () => signal.throwIfAborted()));
          sale.releases?.();
        }),
      close: nothing,
    };
  },
};
