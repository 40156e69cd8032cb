import type { Cluster, Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import { namesOf } from '../../src/redis/names.js';
import { RedisStore, type RedisStoreOptions } from '../../src/redis/store.js';
import { eventually } from '../support/eventually.js';
import { askServer } from '../support/servers/index.js';
import { PREFIX } from '../waiting/actors.js';
import type { StoreActor } from '../waiting/claims.js';

export interface RedisStoreActor extends StoreActor {
  readonly store: RedisStore;
}

/** A store on a client of its own, which both end with the test. When it is killed, all `servers` have noticed. */
export function storeActor(
  redis: Redis | Cluster,
  options: Partial<RedisStoreOptions> = {},
  { servers = [], connectionName = '' }: { servers?: readonly string[]; connectionName?: string } = {},
): RedisStoreActor {
  redis.on('error', () => {});
  const keyPrefix = options.keyPrefix ?? PREFIX;
  const settings = { keyPrefix, commandTimeout: 10_000, ...options };
  const store = new RedisStore(redis as Redis, settings, () => {});
  const close = () => {
    void store.close();
    redis.disconnect();
  };
  onTestFinished(close);
  const isGone = async () => {
    const lists = await Promise.all(servers.map((url) => askServer(url, 'CLIENT', 'LIST')));
    return !String(lists).includes(connectionName);
  };
  return {
    store,
    kill: async () => {
      close();
      if (servers.length > 0) await eventually('the servers have noticed', isGone);
    },
    forget: (key) => {
      const { lease, queue } = namesOf(keyPrefix, key);
      return redis.del(lease, queue);
    },
  };
}
