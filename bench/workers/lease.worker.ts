// One of two processes that pass the lease of a key to and fro: the waiting room alone, without Postgres.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Deadline } from '../../src/base/clock.js';
import { Renewal } from '../../src/lease/renewal.js';
import { WaitingRoom } from '../../src/lease/waiting-room.js';
import { RedisStore } from '../../src/redis/store.js';
import type { Site } from '../house.js';
import { stamp } from '../measure/stamp.js';
import { serve } from './serve.js';

const TIME = 60_000;
/** How long each turn lasts, so that the other process waits by then; ms. */
const HELD = 3;

const { redis: url } = JSON.parse(process.argv[2] as string) as Site;
const redis = new Redis(url);
const store = new RedisStore(redis, { keyPrefix: 'bench:', commandTimeout: 2_000 }, () => {});
const options = { fairness: 'process', maxLocalHandovers: 16 } as const;
const room = new WaitingRoom(store, new Renewal(store), () => {}, options);

export interface LeaseTurn {
  readonly began: number;
  readonly left: number;
  /** A PING, while the other process waits; ms. */
  readonly roundTrip: number;
}

const verbs = {
  async turns(count: number): Promise<LeaseTurn[]> {
    const turns: LeaseTurn[] = [];
    for (let turn = 0; turn < count; turn++) {
      const request = { leaseTime: TIME, renew: true, waitTime: TIME, deadline: new Deadline(TIME) };
      const held = await room.enter('to and fro', {
        ...request,
        signal: undefined,
        mayShare: false,
        mayBeEarly: false,
      });
      const began = stamp();
      await sleep(HELD);
      const sent = stamp();
      await redis.ping();
      const roundTrip = stamp() - sent;
      const left = stamp();
      held.leave();
      turns.push({ began, left, roundTrip });
    }
    return turns;
  },
};

export type LeaseVerbs = typeof verbs;
serve(verbs);
