import { randomUUID } from 'node:crypto';
import { type LeaseStore, MOST_WAITERS } from '../../lease/store.js';
import type { ClusterClient, RedisClient } from '../../redis/client.js';
import { RedisStore } from '../../redis/store.js';
import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { clusterOf, listOf, masterOf, mastersOf } from './cluster.js';
import { addressOf, clientFor, connected, infoOf, loadClient, placeOf, refusedAt, WITHIN } from './ioredis.js';
import type { Locks, RedisServer, StoreOptions } from './redis-server.js';

/** A Redis server after a try to connect. */
export interface RedisServerClient extends RedisServer {
  /** Why the server cannot be used. */
  readonly failure: Problem | undefined;
}

/** Where this URL leads, without connecting. @throws Problem if it is invalid. */
export async function redisPlace(context: Context, url: string): Promise<string> {
  context.hide(url);
  const { Redis } = await loadClient();
  return placeOf(clientFor(Redis, url));
}

/** @throws Problem if the server cannot be reached. */
export async function connectRedis(context: Context, url: string): Promise<RedisServer> {
  const server = await openRedis(context, url);
  if (server.failure) throw server.failure;
  return server;
}

/** Connects to a server. If it cannot be reached, its methods reject. @throws Problem if the URL is invalid. */
export async function openRedis(context: Context, url: string): Promise<RedisServerClient> {
  context.hide(url);
  const { Cluster, Redis } = await loadClient();
  const redis = clientFor(Redis, url);
  const shown = addressOf(redis);
  const { failure, info } = await connected(redis);
  // A node of a Cluster knows the other nodes.
  const cluster = info.get('cluster_enabled') === '1' ? clusterOf(Cluster, redis) : undefined;
  const client = (cluster ?? redis) as unknown as RedisClient | ClusterClient;
  const store = (keyPrefix: string, { wakeUps = true, offerTime }: StoreOptions = {}) =>
    new RedisStore(
      client,
      { keyPrefix, commandTimeout: WITHIN, wakeUps, ...(offerTime !== undefined && { offerTime }) },
      () => {},
    );
  const itself = { shown: placeOf(redis), key: freshKey(), info: () => infoOf(redis) };
  return {
    shown,
    place: placeOf(redis),
    failure,
    mode: info.get('redis_mode') ?? info.get('server_mode'),
    get isConnected() {
      const { status } = cluster ?? redis;
      // The client of a Cluster connects when it is first used.
      return status === 'ready' || (cluster !== undefined && !['close', 'disconnecting', 'end'].includes(status));
    },
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

/** Why a server that could be used cannot be used any more; `undefined`: it can. */
export function lossOf({ shown, isConnected }: RedisServer): string | undefined {
  return isConnected ? undefined : `Redis at ${shown} is not connected any more.`;
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

/**
 * Converts the store's failures to Problems. `where` is called after the failure, when the master of the key is known
 * best.
 */
export function locksOn(store: LeaseStore, where: (key?: string) => string): Locks {
  const refused = (key?: string) => (cause: unknown) => refusedAt(where(key))(cause);
  return {
    inspect: (key) => store.inspect(key, MOST_WAITERS).catch(refused(key)),
    list: async () => ({ keys: await store.list().catch(refused()), missing: [] }),
    force: (key, holder) => store.force(key, holder).catch(refused(key)),
  };
}
