import { randomUUID } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { onTestFinished } from 'vitest';
import { Deadline, LONGEST_TIME } from '../../src/base/clock.js';
import type { FencedLockEvent } from '../../src/base/events.js';
import type { Request } from '../../src/lease/caller.js';
import { Renewal } from '../../src/lease/renewal.js';
import type { LeaseStore } from '../../src/lease/store.js';
import type { Turn } from '../../src/lease/turn.js';
import { WaitingRoom, type WaitingRoomOptions } from '../../src/lease/waiting-room.js';
import { namesOf } from '../../src/redis/keys.js';
import { RedisStore } from '../../src/redis/store.js';
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
  /** What stands before the store. */
  readonly wrap?: (store: LeaseStore, emit: (event: FencedLockEvent) => void) => LeaseStore;
}

/** What a caller asks for; what is not given suits a test that is not about it. */
export type Asked = Partial<Omit<Request, 'deadline'>>;

/** As if it were another process: its own connections, its own waiting room. Closed after the test. */
export class Actor {
  readonly redis: Redis;
  readonly events: FencedLockEvent[] = [];
  readonly store: ObservedStore;
  readonly renewal: Renewal;
  readonly room: WaitingRoom;

  constructor({ url, redis, commandTimeout = 600_000, wrap = (store) => store, ...options }: ActorOptions) {
    this.redis = new Redis(url, { retryStrategy: () => 20, ...redis });
    // What fails by a fault that is made on purpose says so itself.
    this.redis.on('error', () => {});
    const emit = (event: FencedLockEvent) => void this.events.push(event);
    const store = new RedisStore(this.redis, { keyPrefix: PREFIX, commandTimeout }, emit);
    this.store = new ObservedStore(wrap(store, emit));
    this.renewal = new Renewal(this.store);
    const { fairness = 'process', maxLocalHandovers = 16 } = options;
    this.room = new WaitingRoom(this.store, this.renewal, emit, { fairness, maxLocalHandovers });
    onTestFinished(() => this.close());
  }

  acquire(key: string, { waitTime = FOR_EVER, signal, ...asked }: Asked = {}): Promise<Turn> {
    const wait = { deadline: new Deadline(waitTime), waitTime, signal };
    const request = { leaseTime: 60_000, renew: true, mayShare: true, mayBeEarly: true, ...asked, ...wait };
    const turn = this.room.enter(key, request);
    // Who still waits when the test is over is turned away.
    turn.catch(() => {});
    return turn;
  }

  /** Resolves when the lease, if it was given back by that, is. */
  async release(turn: Turn): Promise<void> {
    turn.leave();
    await this.store.released.settled();
  }

  async close(): Promise<void> {
    void this.room.close();
    this.renewal.close();
    await this.store.close();
    this.redis.disconnect();
  }
}

export function someKey(): string {
  return `stock:${randomUUID()}`;
}

/** The Redis key of a lease. */
export function leaseName(key: string): string {
  return namesOf(PREFIX, key).lease;
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
