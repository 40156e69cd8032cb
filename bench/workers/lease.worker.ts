// One of two processes that pass the lease of a key to and fro: the waiting room alone, without Postgres.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Site } from '../house.js';
import { stamp } from '../measure/stamp.js';
import { shippedRoom } from '../shipped.js';
import { serve } from './serve.js';

const { Deadline, Renewal, RedisStore, WaitingRoom } = await shippedRoom();

const TIME = 60_000;
const KEY = 'to and fro';

const { redis: url } = JSON.parse(process.argv[2] as string) as Site;
const redis = new Redis(url);
const store = new RedisStore(redis, { keyPrefix: 'bench:', commandTimeout: 2_000 }, () => {});
const options = { fairness: 'process', passOnAfter: 50 } as const;
const room = new WaitingRoom(store, new Renewal(store), () => {}, options);

/** What is said without the lock, and when it was heard. */
const listener = new Redis(url);
const heard = new Map<string, number>();
listener.on('message', (_channel: string, message: string) => heard.set(message, stamp()));

export interface LeaseTurn {
  /** The key was offered: what begins with the turn, a transaction, may. */
  readonly began: number;
  /** The lease is had. */
  readonly confirmed: number;
  readonly left: number;
  /** A GET, ms. */
  readonly roundTrip: number;
  /** Before a message to the other process was sent, and what it was. */
  readonly said: number;
  readonly message: string;
}

export interface LeaseTurns {
  readonly turns: LeaseTurn[];
  readonly heard: ReadonlyArray<[message: string, at: number]>;
}

interface Asked {
  readonly me: 0 | 1;
  readonly count: number;
  /** A quarter of a turn; ms. */
  readonly pause: number;
}

const verbs = {
  async turns({ me, count, pause }: Asked): Promise<LeaseTurns> {
    heard.clear();
    await listener.subscribe(`bare ${me}`);
    const turns: LeaseTurn[] = [];
    for (let turn = 0; turn < count; turn++) {
      let offered = Number.NaN;
      const held = await room.enter(KEY, {
        options: { leaseTime: TIME, renew: true, waitTime: TIME, signal: undefined },
        deadline: new Deadline(TIME),
        preopen: {
          open: () => {
            offered = stamp();
          },
          wait: () => {},
          discard: () => {
            offered = Number.NaN;
          },
        },
      });
      const confirmed = stamp();
      // The round trip, the message and the release each come when everybody has slept for a pause, and none comes
      // behind another: a server that has just been awake, and a process that has not slept, answer sooner.
      // Twice at first: the other one comes back after one, and what a turn sends behind its beginning is over by then.
      await sleep(2 * pause);
      const asked = stamp();
      await redis.get('nothing');
      const roundTrip = stamp() - asked;
      await sleep(pause);
      const message = `${me} ${turn}`;
      const said = stamp();
      await redis.publish(`bare ${1 - me}`, message);
      await sleep(pause);
      const left = stamp();
      held.end();
      const began = Number.isNaN(offered) ? confirmed : offered;
      turns.push({ began, confirmed, left, roundTrip, said, message });
      // It comes again when the other one is at work: a look at the same moment would be in that one's way.
      await sleep(pause);
    }
    return { turns, heard: [...heard] };
  },
};

export type LeaseVerbs = typeof verbs;
serve(verbs);
