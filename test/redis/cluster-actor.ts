import { Cluster, type ClusterOptions } from 'ioredis';
import { onTestFinished } from 'vitest';
import { Deadline } from '../../src/base/clock.js';
import type { FencedLockEvent } from '../../src/base/events.js';
import { Renewal } from '../../src/lease/renewal.js';
import type { Turn } from '../../src/lease/turn.js';
import { WaitingRoom } from '../../src/lease/waiting-room.js';
import type { ClusterClient } from '../../src/redis/client.js';
import { RedisStore, type RedisStoreOptions } from '../../src/redis/store.js';
import { type Asked, FOR_EVER, PREFIX } from '../lease/actors.js';
import { ObservedStore } from '../lease/observed-store.js';
import type { ClusterGroup } from '../support/servers/cluster.js';

/** Without what ioredis' types refuse under `exactOptionalPropertyTypes`. */
export type ClientOptions = Omit<ClusterOptions, 'redisOptions'> & {
  readonly redisOptions?: Omit<NonNullable<ClusterOptions['redisOptions']>, 'replyMapping'>;
};

export interface ClusterActorOptions {
  readonly client?: ClientOptions;
  readonly store?: Partial<RedisStoreOptions>;
}

/** As if it were another process that has a Cluster: its own connections, its own waiting room. */
export class ClusterActor {
  readonly redis: Cluster;
  readonly events: FencedLockEvent[] = [];
  readonly store: ObservedStore;
  readonly room: WaitingRoom;
  readonly #renewal: Renewal;

  constructor({ nodes }: Pick<ClusterGroup, 'nodes'>, { client = {}, store: options = {} }: ClusterActorOptions = {}) {
    this.redis = new Cluster(
      nodes.map(({ host, port }) => ({ host, port })),
      client,
    );
    this.redis.on('error', () => {});
    const emit = (event: FencedLockEvent) => void this.events.push(event);
    const settings = { keyPrefix: PREFIX, commandTimeout: 2_000, ...options };
    this.store = new ObservedStore(new RedisStore(this.redis as unknown as ClusterClient, settings, emit));
    this.#renewal = new Renewal(this.store);
    this.room = new WaitingRoom(this.store, this.#renewal, emit, { fairness: 'process', maxLocalHandovers: 16 });
    onTestFinished(() => this.close());
  }

  acquire(key: string, { signal, ...asked }: Asked = {}): Promise<Turn> {
    const wait = { deadline: new Deadline(FOR_EVER), waitTime: FOR_EVER, signal };
    const request = { leaseTime: 60_000, renew: true, mayShare: true, mayBeEarly: true, ...asked, ...wait };
    const turn = this.room.enter(key, request);
    // Who still waits when the test is over is turned away.
    turn.catch(() => {});
    return turn;
  }

  /** A contender that has looked twice, has its place in the queue, and sleeps. */
  async asleep(key: string, asked: Asked = {}): Promise<{ turn: Promise<Turn> }> {
    const before = this.store.answers.count;
    const turn = this.acquire(key, asked);
    await this.store.answers.reach(before + 2);
    return { turn };
  }

  async close(): Promise<void> {
    void this.room.close();
    this.#renewal.close();
    await this.store.close();
    this.redis.disconnect();
  }
}
