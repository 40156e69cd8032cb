import { randomUUID } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { onTestFinished } from 'vitest';
import { Deadline, LONGEST_TIME } from '../../src/base/clock.js';
import type { Emit, FencedLockEvent } from '../../src/base/events.js';
import { namesOf } from '../../src/redis/names.js';
import { RedisStore } from '../../src/redis/store.js';
import { Renewal } from '../../src/waiting/renewal.js';
import { WaitingRoom, type WaitingRoomOptions } from '../../src/waiting/room.js';
import type { LeaseStore } from '../../src/waiting/store.js';
import type { LeaseOptions, Preopen, Turn } from '../../src/waiting/turn.js';
import { ObservedStore } from './observed-store.js';

export { Tally, turnOfLoop } from './tally.js';

export const PREFIX = 'fenced-lock:';

/** Longer than any test: whoever gets on did not get on because some time was over. */
export const FOR_EVER = LONGEST_TIME;

export interface ActorOptions extends Partial<WaitingRoomOptions> {
  readonly url: string;
  readonly redis?: Omit<RedisOptions, 'replyMapping'>;
  /** Default: so long that a look ends by its answer, and by nothing else. */
  readonly commandTimeout?: number;
  /** Without wake-ups. */
  readonly polls?: boolean;
  /** What stands before the store. */
  readonly wrap?: (store: LeaseStore, emit: Emit) => LeaseStore;
}

/** What a caller asks for; what is not given suits a test that is not about it. */
export interface Asked extends Partial<LeaseOptions> {
  readonly preopen?: Preopen;
  readonly isHandle?: boolean;
}

const NOTHING_AHEAD: Preopen = { open: () => {}, wait: () => {}, discard: () => {} };

/** As if it were another process: its own store, its own waiting room. Closed after the test. */
export abstract class Party {
  readonly events: FencedLockEvent[] = [];
  readonly store: ObservedStore;
  readonly renewal: Renewal;
  readonly room: WaitingRoom;

  constructor(store: (emit: Emit) => LeaseStore, options: Partial<WaitingRoomOptions>) {
    const emit: Emit = (event) => void this.events.push(event);
    this.store = new ObservedStore(store(emit));
    this.renewal = new Renewal(this.store);
    this.room = new WaitingRoom(this.store, this.renewal, emit, {
      fairness: 'process',
      passOnAfter: FOR_EVER,
      ...options,
    });
    onTestFinished(() => this.close());
  }

  acquire(key: string, { waitTime = FOR_EVER, signal, ...asked }: Asked = {}): Promise<Turn> {
    const { leaseTime = 60_000, renew = true, preopen = NOTHING_AHEAD, isHandle = false } = asked;
    const options = { leaseTime, renew, waitTime, signal };
    const request = { options, deadline: new Deadline(waitTime), preopen: isHandle ? undefined : preopen };
    const turn = this.room.enter(key, request);
    // Who still waits when the test is over is turned away.
    turn.catch(() => {});
    return turn;
  }

  /** Resolves when the lease, if it was given back by that, is. */
  async release(turn: Turn): Promise<void> {
    turn.end();
    await this.store.released.settled();
  }

  async close(): Promise<void> {
    void this.room.close();
    this.renewal.close();
    await this.store.close();
    this.disconnect();
  }

  abstract disconnect(): void;
}

/** On one Redis. */
export class Actor extends Party {
  readonly redis: Redis;

  constructor({ url, redis, commandTimeout = 600_000, polls, wrap = (store) => store, ...options }: ActorOptions) {
    const client = connect(url, redis);
    const settings = { keyPrefix: PREFIX, commandTimeout, wakeUps: polls !== true };
    const make = (emit: Emit) => wrap(new RedisStore(client, settings, emit), emit);
    super(make, options);
    this.redis = client;
  }

  disconnect(): void {
    // One that is ended in a TLS handshake that fails can have two errors, and ioredis listens once.
    this.redis.stream?.on('error', () => {});
    this.redis.disconnect();
  }
}

export function connect(url: string, options: ActorOptions['redis'] = {}): Redis {
  const redis = new Redis(url, { retryStrategy: () => 20, ...options });
  // What fails by a fault that is made on purpose says so itself.
  redis.on('error', () => {});
  return redis;
}

export function someKey(): string {
  return `stock:${randomUUID()}`;
}

/** The Redis key of a lease. */
export function leaseName(key: string): string {
  return namesOf(PREFIX, key).lease;
}

/** Who has the key, as this server says. */
export async function holderOf(redis: Redis, key: string): Promise<string | null> {
  const lease = await redis.get(leaseName(key));
  return lease?.replace(/ \d+$/, '') ?? null;
}

/** The Redis key of those who wait. */
export function queueName(key: string): string {
  return namesOf(PREFIX, key).queue;
}

/** Who subscribes to the key's wake-ups, as the server says. */
export async function receivers(admin: Redis, key: string): Promise<number> {
  const [, count] = (await admin.pubsub('NUMSUB', namesOf(PREFIX, key).wake)) as [string, number];
  return Number(count);
}
