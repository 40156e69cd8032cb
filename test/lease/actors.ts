import { randomUUID } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { onTestFinished } from 'vitest';
import { Deadline, LONGEST_TIME } from '../../src/base/clock.js';
import type { FencedLockEvent } from '../../src/base/events.js';
import { acquire, type Held } from '../../src/lease/acquire.js';
import { LocalQueue } from '../../src/lease/queue.js';
import type { Answer, Claim, Extension, LeaseStore, Watch } from '../../src/lease/store.js';
import { namesOf } from '../../src/redis/keys.js';
import { RedisStore } from '../../src/redis/store.js';

export const PREFIX = 'fenced-lock:';

/** Longer than any test: whoever gets on did not get on because some time was over. */
export const FOR_EVER = LONGEST_TIME;

export interface ActorOptions {
  readonly url: string;
  readonly redis?: Omit<RedisOptions, 'replyMapping'>;
  /** Default: so long that a look ends by its answer, or by the caller's signal, and by nothing else. */
  readonly commandTimeout?: number;
}

/** As if it were another process: its own connections, its own queue. Closed after the test. */
export class Actor {
  readonly redis: Redis;
  readonly events: FencedLockEvent[] = [];
  readonly store: ObservedStore;
  readonly queue = new LocalQueue();

  constructor({ url, redis, commandTimeout = 600_000 }: ActorOptions) {
    this.redis = new Redis(url, { retryStrategy: () => 20, ...redis });
    // What fails by a fault that is made on purpose says so itself.
    this.redis.on('error', () => {});
    const emit = (event: FencedLockEvent) => void this.events.push(event);
    this.store = new ObservedStore(new RedisStore(this.redis, { keyPrefix: PREFIX, commandTimeout }, emit));
    onTestFinished(() => this.close());
  }

  acquire(key: string, options: Partial<Claim> & { waitTime?: number; signal?: AbortSignal } = {}): Promise<Held> {
    const { leaseTime = 60_000, holder = randomUUID(), waitTime = FOR_EVER, signal } = options;
    const wait = { deadline: new Deadline(waitTime), waitTime, signal, onWait: () => {} };
    const emit = (event: FencedLockEvent) => void this.events.push(event);
    return acquire(this.store, this.queue, { key, holder, leaseTime }, wait, emit);
  }

  async release({ lease, turn }: Held): Promise<void> {
    const released = this.store.release(lease);
    turn.leave();
    await released;
  }

  async close(): Promise<void> {
    await this.store.close();
    this.redis.disconnect();
  }
}

/** The store, and what has been asked of it: an event for each, so that nothing has to be waited for by the clock. */
export class ObservedStore implements LeaseStore {
  readonly looks = new Tally();
  readonly answers = new Tally();
  readonly watches = new Tally();
  readonly extensions: Array<{ claims: readonly Claim[]; answers: readonly Extension[] }> = [];
  readonly extended = new Tally();
  readonly extending = new Tally();
  readonly released = new Tally();
  /** Runs between the first look and the subscription. */
  beforeWatch: () => Promise<unknown> = async () => {};
  /** Runs between a look and its answer, with the look's number. */
  beforeAnswer: (look: number) => Promise<unknown> = async () => {};
  readonly #store: LeaseStore;

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  async acquire(claim: Claim, atMost?: number): Promise<Answer> {
    this.looks.add();
    try {
      const look = this.looks.count;
      const answer = await this.#store.acquire(claim, atMost);
      await this.beforeAnswer(look);
      return answer;
    } finally {
      this.answers.add();
    }
  }

  async extend(claims: readonly Claim[]): Promise<Extension[]> {
    this.extending.add();
    const answers = await this.#store.extend(claims);
    this.extensions.push({ claims: [...claims], answers });
    this.extended.add();
    return answers;
  }

  async release(claim: Claim): Promise<void> {
    await this.#store.release(claim);
    this.released.add();
  }

  async watch(key: string, wake: () => void): Promise<Watch> {
    await this.beforeWatch();
    const watching = this.#store.watch(key, wake);
    this.watches.add();
    return await watching;
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}

/** Counts, and tells who waits for a count. */
export class Tally {
  count = 0;
  #waiting: Array<{ count: number; reached: () => void }> = [];

  add(): void {
    this.count++;
    this.#waiting = this.#waiting.filter(({ count, reached }) => {
      if (count > this.count) return true;
      reached();
      return false;
    });
  }

  /** Resolves once whoever was told of it before has acted on it. */
  async reach(count: number): Promise<void> {
    if (this.count < count) {
      await new Promise<void>((reached) => {
        this.#waiting.push({ count, reached });
      });
    }
    await turnOfLoop();
  }
}

/** Everything that was ready to run has run. */
export function turnOfLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

export function someKey(): string {
  return `stock:${randomUUID()}`;
}

/** The Redis key of a lease. */
export function leaseName(key: string): string {
  return namesOf(PREFIX, key).lease;
}

/** Who subscribes to the key's wake-ups, as the server says. */
export async function receivers(admin: Redis, key: string): Promise<number> {
  const [, count] = (await admin.pubsub('NUMSUB', namesOf(PREFIX, key).channel)) as [string, number];
  return Number(count);
}
