import { setTimeout as sleep } from 'node:timers/promises';
import { askServer, type RedisServer } from '../../test/support/servers/index.js';
import { seeded } from '../measure/random.js';
import { type Crew, PROCESSES } from './crew.js';

/** What can be hurt. */
export interface Scene {
  readonly redis: RedisServer;
  readonly crew: Crew;
  /** How long the faults last that end by themselves; ms. */
  readonly lasts: number;
  /** Ends all sessions of the processes in Postgres. */
  endSessions(): Promise<unknown>;
}

export interface Fault {
  readonly name: string;
  /** At the process of this place, if it strikes one. Resolves when it is over, to whether it struck. */
  strike(scene: Scene, place: number): Promise<boolean>;
}

const certainly = (strike: (scene: Scene) => Promise<unknown>) => async (scene: Scene) => {
  await strike(scene);
  return true;
};

export const processFrozen: Fault = {
  name: 'process frozen',
  strike: ({ crew, lasts }, place) => crew.freeze(place, () => sleep(lasts)),
};

export const FAULTS: readonly Fault[] = [
  processFrozen,
  { name: 'process killed', strike: ({ crew }, place) => crew.replace(place) },
  { name: 'Redis flushed', strike: certainly(({ redis }) => askServer(redis.url, 'FLUSHALL')) },
  {
    name: 'Redis restarted empty',
    strike: certainly(async ({ redis }) => {
      await redis.killHard();
      await redis.start();
    }),
  },
  {
    name: 'Redis frozen',
    strike: certainly(async ({ redis, lasts }) => {
      redis.freeze();
      await sleep(lasts);
      redis.thaw();
    }),
  },
  { name: 'connections ended', strike: certainly(({ endSessions }) => endSessions()) },
];

export interface Strike {
  /** Since the start; ms. */
  readonly at: number;
  readonly fault: Fault;
  readonly place: number;
}

/** Between the beginnings of two faults; ms. */
const SHORTEST_GAP = 2_000;
const LONGEST_GAP = 3_000;

/** The same for the same seed. Each fault comes equally often: all of them in an order at random, and again. */
export function schedule(seed: number, seconds: number): Strike[] {
  const random = seeded(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const strikes: Strike[] = [];
  let left: Fault[] = [];
  for (let at = 0; ; ) {
    at += SHORTEST_GAP + below(LONGEST_GAP - SHORTEST_GAP);
    if (at >= seconds * 1_000) return strikes;
    if (left.length === 0) left = [...FAULTS];
    const [fault] = left.splice(below(left.length), 1);
    strikes.push({ at, fault: fault as Fault, place: below(PROCESSES) });
  }
}
