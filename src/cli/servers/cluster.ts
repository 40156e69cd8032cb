import type { Cluster, Redis } from 'ioredis';
import type { ClusterClient } from '../../redis/client.js';
import { namesOf } from '../../redis/names.js';
import { RedisStore } from '../../redis/store.js';
import { slotOf } from '../../redis/topology/slot.js';
import { messageOf, Problem } from '../problem.js';
import { connected, infoOf, refusedAt, WITHIN } from './ioredis.js';
import type { Listing, RedisNode } from './redis-server.js';

/** How many random keys are tried to find one that a master stores: the master may have only one of 16 384 slots. */
const TRIES = 200_000;

/** A Cluster client with the options of one node's URL. */
export function clusterOf(Client: typeof Cluster, { options }: Redis): Cluster {
  const { host = 'localhost', port = 6379, keyPrefix, replyMapping, ...others } = options;
  const cluster = new Client([{ host, port }], {
    lazyConnect: true,
    // A Cluster that does not serve all keys still serves some.
    enableReadyCheck: false,
    clusterRetryStrategy: () => null,
    ...(keyPrefix !== undefined && { keyPrefix }),
    redisOptions: { ...others, ...(replyMapping && { replyMapping }) },
  });
  cluster.on('error', () => {});
  return cluster;
}

/** The masters that store keys of this prefix; empty if the Cluster does not tell who serves the slots. */
export async function mastersOf(
  cluster: Cluster,
  one: Redis,
  keyPrefix: string,
  someKey: () => string,
): Promise<RedisNode[]> {
  return (await mastersIn(cluster)).flatMap((address) => {
    const key = keyAt(cluster, address, keyPrefix, someKey);
    if (key === undefined) return [];
    return { shown: address, key, info: () => withNode(one, address, infoOf) };
  });
}

/** The master of a key, as far as the Cluster's slot map is known. */
export function masterOf(cluster: Cluster, keyPrefix: string, key?: string): string | undefined {
  if (key === undefined) return undefined;
  const { lease } = namesOf(`${cluster.options.keyPrefix ?? ''}${keyPrefix}`, key);
  return cluster.slots[slotOf(lease)]?.[0];
}

/**
 * Lists the keys of each master separately, so that the result is partial if one is down. @throws Problem if all fail.
 */
export async function listOf(
  cluster: Cluster,
  one: Redis,
  keyPrefix: string,
  otherwise: () => Promise<Listing>,
): Promise<Listing> {
  const masters = await mastersIn(cluster);
  if (masters.length === 0) return await otherwise();
  const lists = await Promise.allSettled(
    masters.map((address) =>
      withNode(one, address, (node) => storeThrough(cluster, node, keyPrefix).list().catch(refusedAt(address))),
    ),
  );
  const missing = lists.flatMap((list) => (list.status === 'rejected' ? `${messageOf(list.reason)}.` : []));
  if (missing.length === lists.length) throw new Problem(missing.join(' '));
  const states = lists.flatMap((list) => (list.status === 'fulfilled' ? list.value : []));
  // A key whose slot moves may be seen on both nodes.
  return { keys: [...new Map(states.map((state) => [state.key, state])).values()], missing };
}

/** A store that scans only this node, but reads each key wherever the Cluster has it. */
function storeThrough(cluster: Cluster, node: Redis, keyPrefix: string): RedisStore {
  const client = new Proxy(cluster, {
    get: (target, name) => (name === 'nodes' ? () => [node] : Reflect.get(target, name)),
  });
  const options = { keyPrefix, commandTimeout: WITHIN, wakeUps: false };
  return new RedisStore(client as unknown as ClusterClient, options, () => {});
}

async function mastersIn(cluster: Cluster): Promise<string[]> {
  if (cluster.status === 'wait') await cluster.connect().catch(() => {});
  return [...new Set(cluster.slots.flatMap((nodes) => nodes?.[0] ?? []))];
}

/** Opens a separate connection to the node, which may be down. @throws Problem */
async function withNode<T>(one: Redis, address: string, work: (node: Redis) => Promise<T>): Promise<T> {
  const colon = address.lastIndexOf(':');
  const node = one.duplicate({ host: address.slice(0, colon), port: Number(address.slice(colon + 1)) });
  try {
    const { failure } = await connected(node);
    if (failure) throw failure;
    return await work(node);
  } finally {
    node.disconnect();
  }
}

function keyAt(cluster: Cluster, address: string, keyPrefix: string, someKey: () => string): string | undefined {
  for (let tries = 0; tries < TRIES; tries++) {
    const key = someKey();
    if (masterOf(cluster, keyPrefix, key) === address) return key;
  }
  return undefined;
}
