import { randomUUID } from 'node:crypto';
import type { LeaseStore } from '../../lease/store.js';
import type { ClusterClient, RedisClient } from '../../redis/client.js';
import { RedisStore } from '../../redis/store.js';
import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { clusterOf, listOf, masterOf, mastersOf } from './cluster.js';
import { addressOf, clientFor, connected, infoOf, loadClient, refusedAt, WITHIN } from './ioredis.js';
import type { Locks, RedisServer, StoreOptions } from './redis-server.js';

/** One that was tried to connect to. */
export interface RedisServerClient extends RedisServer {
  /** Why it cannot be used. */
  readonly failure: Problem | undefined;
}

/** @throws Problem where it cannot be reached */
export async function connectRedis(context: Context, url: string): Promise<RedisServer> {
  const server = await openRedis(context, url);
  if (server.failure) throw server.failure;
  return server;
}

/** What cannot be reached refuses whatever it is asked. @throws Problem where the URL is none */
export async function openRedis(context: Context, url: string): Promise<RedisServerClient> {
  context.hide(url);
  const { Cluster, Redis } = await loadClient();
  const redis = clientFor(Redis, url);
  const shown = addressOf(redis);
  const { failure, info } = await connected(redis);
  // One node of a Cluster knows the way to the others.
  const cluster = info.get('cluster_enabled') === '1' ? clusterOf(Cluster, redis) : undefined;
  const client = (cluster ?? redis) as unknown as RedisClient | ClusterClient;
  const store = (keyPrefix: string, { wakeUps = true, offerTime }: StoreOptions = {}) =>
    new RedisStore(
      client,
      { keyPrefix, commandTimeout: WITHIN, wakeUps, ...(offerTime !== undefined && { offerTime }) },
      () => {},
    );
  const itself = { shown, key: freshKey(), info: () => infoOf(redis) };
  return {
    shown,
    failure,
    mode: info.get('redis_mode') ?? info.get('server_mode'),
    nodes: async (keyPrefix) => {
      const masters = cluster === undefined ? [] : await mastersOf(cluster, redis, keyPrefix, freshKey);
      return masters.length === 0 ? [itself] : masters;
    },
    locks: (keyPrefix) => {
      if (cluster === undefined) return locksOn(store(keyPrefix), () => shown);
      const locks = locksOn(store(keyPrefix), (key) => masterOf(cluster, keyPrefix, key) ?? shown);
      return { ...locks, list: () => listOf(cluster, redis, keyPrefix, locks.list) };
    },
    store,
    close: () => {
      cluster?.disconnect();
      redis.disconnect();
    },
  };
}

function freshKey(): string {
  return `fenced-lock doctor ${randomUUID()}`;
}

/** @throws Problem */
export function checkKeepsLocks({ shown, mode }: RedisServer): void {
  if (mode !== 'sentinel') return;
  throw new Problem(
    `Redis at ${shown} is a Sentinel, which keeps no locks: give the URL of the primary. ` +
      'SENTINEL get-master-addr-by-name <name> says where that is.',
  );
}

/** Whose failures are Problems. `where` a key is is asked for after a failure, when as much is known as will be. */
export function locksOn(store: LeaseStore, where: (key?: string) => string): Locks {
  const refused = (key?: string) => (cause: unknown) => refusedAt(where(key))(cause);
  return {
    inspect: (key) => store.inspect(key).catch(refused(key)),
    list: async () => ({ keys: await store.list().catch(refused()), missing: [] }),
    force: (key, holder) => store.force(key, holder).catch(refused(key)),
  };
}
