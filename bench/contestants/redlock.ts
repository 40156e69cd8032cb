import type { Redis } from 'ioredis';
// @ts-expect-error: what it exports hides its own types from NodeNext
import Redlock from 'redlock';
import { type Contestant, nothing, WAIT_TIME, work } from './contestant.js';

interface Locks {
  on(event: 'error', listener: (error: Error) => void): unknown;
  using<T>(resources: string[], duration: number, routine: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

const RETRY_DELAY = 200;

/** `using`, with its default pauses, and as many of them as the wait time has room for. */
export const redlock: Contestant = {
  name: 'redlock',
  waits: 'redis',
  shop: 'plain',
  open({ prisma, redis, leaseTime }) {
    const Locks = Redlock as new (clients: Redis[], settings: object) => Locks;
    const locks = new Locks([redis], {
      retryCount: WAIT_TIME / RETRY_DELAY,
      retryDelay: RETRY_DELAY,
      retryJitter: 100,
    });
    locks.on('error', nothing);
    return {
      sell: (sale) =>
        locks.using([`redlock:${sale.key}`], leaseTime, async (signal) => {
          await prisma.$transaction((tx) => work(tx, sale, () => signal.throwIfAborted()));
          sale.releases?.();
        }),
      close: nothing,
    };
  },
};
