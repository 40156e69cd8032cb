// A process that locks on a Redis of any kind, with what is recommended for it.
import { setTimeout as sleep } from 'node:timers/promises';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../../test/generated/prisma/client.js';
import { connectTo, type RedisSite } from '../../test/support/redis-site.js';
import { stamp } from '../measure/stamp.js';
import { summary } from '../measure/statistics.js';
import { fencedLock } from '../shipped.js';
import { serve } from './serve.js';

export interface TopologySite {
  readonly database: string;
  readonly redis: RedisSite;
  readonly wake: 'pubsub' | 'poll';
  /** The row that is written. */
  readonly id: number;
}

/** How long each turn lasts where two take turns, so that the other process waits by then; ms. */
const HELD = 3;

const { database, redis, wake, id } = JSON.parse(process.argv[2] as string) as TopologySite;
const plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: database, max: 4 }) });
const prisma = plain.$extends(fencedLock({ redis: connectTo(redis).redis, wake }));
const work = { where: { id }, data: { quantity: { decrement: 1 } } };

export interface Span {
  readonly began: number;
  readonly ended: number;
}

const verbs = {
  /** One after the other, with nobody else there; the median of one, in ms. */
  async alone(count: number): Promise<number> {
    const times: number[] = [];
    for (let done = 0; done < count; done++) {
      const from = stamp();
      await prisma.$withLock('alone', (tx) => tx.stock.update(work));
      times.push(stamp() - from);
    }
    return summary(times).median;
  },
  /** Without any lock, as much. */
  async bare(count: number): Promise<number> {
    const times: number[] = [];
    for (let done = 0; done < count; done++) {
      const from = stamp();
      await plain.$transaction((tx) => tx.stock.update(work));
      times.push(stamp() - from);
    }
    return summary(times).median;
  },
  /** When the work of each turn began and ended. */
  async turns(count: number): Promise<Span[]> {
    const spans: Span[] = [];
    for (let turn = 0; turn < count; turn++) {
      const span = await prisma.$withLock(
        'to and fro',
        async (tx) => {
          const began = stamp();
          await tx.stock.update(work);
          await sleep(HELD);
          return { began, ended: stamp() };
        },
        { waitTime: 60_000 },
      );
      spans.push(span);
    }
    return spans;
  },
};

export type TopologyVerbs = typeof verbs;
serve(verbs);
