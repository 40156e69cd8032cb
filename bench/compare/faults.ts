import { setTimeout as sleep } from 'node:timers/promises';
import { askServer, type RedisServer } from '../../test/support/servers/index.js';
import type { Worker } from '../../test/support/worker.js';
import { seeded } from '../measure/random.js';
import { PROCESSES } from './crew.js';

/** What can be hurt. */
interface Scene {
  readonly redis: RedisServer;
  /** A process; one of its sales has read its row, and writes when the fault is over. */
  readonly worker: Worker;
  /** How long the faults last that end by themselves; ms. */
  readonly lasts: number;
  /** Ends all sessions of the processes in Postgres. */
  endSessions(): Promise<unknown>;
  /** Starts a process in place of this one. */
  replace(): Promise<unknown>;
}

export interface Fault {
  readonly name: string;
  strike(scene: Scene): Promise<unknown>;
}

/** Until the others are connected again, and may have taken the lock; ms. */
const NOTICE = 300;

export const processFrozen: Fault = {
  name: 'process frozen',
  async strike({ worker, lasts }) {
    worker.freeze();
    await sleep(lasts);
  },
};

export const FAULTS: readonly Fault[] = [
  processFrozen,
  {
    name: 'process killed',
    async strike({ worker, replace }) {
      await worker.kill();
      await replace();
    },
  },
  {
    name: 'Redis flushed',
    async strike({ redis }) {
      await askServer(redis.url, 'FLUSHALL');
      await sleep(NOTICE);
    },
  },
  {
    name: 'Redis restarted empty',
    async strike({ redis }) {
      await redis.killHard();
      await redis.start();
      await sleep(NOTICE);
    },
  },
  {
    name: 'Redis frozen',
    async strike({ redis, lasts }) {
      redis.freeze();
      await sleep(lasts);
      redis.thaw();
      await sleep(NOTICE);
    },
  },
  { name: 'connections ended', strike: ({ endSessions }) => endSessions() },
];

export interface Strike {
  /** Since the start; ms. */
  readonly at: number;
  readonly fault: Fault;
  /** Of the process. */
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
