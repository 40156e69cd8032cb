import type { Cluster, Redis } from 'ioredis';
import { namesOf } from '../../redis/keys.js';
import { slotOf } from '../../redis/slot.js';
import { connected, infoOf } from './ioredis.js';
import type { RedisNode } from './redis-server.js';

/** How many keys are tried, to find one that a master keeps: one in 16 384 may be there. */
const TRIES = 200_000;

/** With all that the URL of one node says. */
export function clusterOf(Client: typeof Cluster, { options }: Redis): Cluster {
  const { host = 'localhost', port = 6379, keyPrefix, replyMapping, ...others } = options;
  const cluster = new Client([{ host, port }], {
    lazyConnect: true,
    // One that does not serve all keys serves some.
    enableReadyCheck: false,
    clusterRetryStrategy: () => null,
    ...(keyPrefix !== undefined && { keyPrefix }),
    redisOptions: { ...others, ...(replyMapping && { replyMapping }) },
  });
  cluster.on('error', () => {});
  return cluster;
}

/** The masters that keep keys of this prefix; none where the Cluster does not say who has a slot. */
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

async function mastersIn(cluster: Cluster): Promise<string[]> {
  if (cluster.status === 'wait') await cluster.connect().catch(() => {});
  return [...new Set(cluster.slots.flatMap((nodes) => nodes?.[0] ?? []))];
}

/** With a connection of its own, to one that may be down. @throws Problem */
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
  const prefix = `${cluster.options.keyPrefix ?? ''}${keyPrefix}`;
  for (let tries = 0; tries < TRIES; tries++) {
    const key = someKey();
    if (cluster.slots[slotOf(namesOf(prefix, key).lease)]?.[0] === address) return key;
  }
  return undefined;
}
