import { Cluster, type ClusterOptions } from 'ioredis';
import type { Emit } from '../../../src/base/events.js';
import type { ClusterClient } from '../../../src/redis/client.js';
import { RedisStore, type RedisStoreOptions } from '../../../src/redis/store.js';
import type { LeaseStore } from '../../../src/waiting/store.js';
import type { Turn } from '../../../src/waiting/turn.js';
import type { ClusterGroup } from '../../support/servers/cluster.js';
import { type Asked, Party, PREFIX } from '../../waiting/actors.js';

/** Without what ioredis' types refuse under `exactOptionalPropertyTypes`. */
export type ClientOptions = Omit<ClusterOptions, 'redisOptions'> & {
  readonly redisOptions?: Omit<NonNullable<ClusterOptions['redisOptions']>, 'replyMapping'>;
};

export interface ClusterActorOptions {
  /** What stands before the store. */
  readonly wrap?: (store: LeaseStore, emit: Emit) => LeaseStore;
  readonly client?: ClientOptions;
  readonly store?: Partial<RedisStoreOptions>;
}

/** On a Cluster. */
export class ClusterActor extends Party {
  readonly redis: Cluster;

  constructor(
    { nodes }: Pick<ClusterGroup, 'nodes'>,
    { client = {}, store = {}, wrap = (inner) => inner }: ClusterActorOptions = {},
  ) {
    const redis = new Cluster(
      nodes.map(({ host, port }) => ({ host, port })),
      client,
    );
    redis.on('error', () => {});
    const settings = { keyPrefix: PREFIX, commandTimeout: 2_000, ...store };
    super((emit) => wrap(new RedisStore(redis as unknown as ClusterClient, settings, emit), emit), {});
    this.redis = redis;
  }

  /** A contender that has looked twice, has its place in the queue, and sleeps. */
  async asleep(key: string, asked: Asked = {}): Promise<{ turn: Promise<Turn> }> {
    const before = this.store.answers.count;
    const turn = this.acquire(key, asked);
    await this.store.answers.reach(before + 2);
    return { turn };
  }

  disconnect(): void {
    this.redis.disconnect();
  }
}
