import type { Cluster, Redis } from 'ioredis';
import { namesOf } from '../../redis/names.js';
import { slotOf } from '../../redis/topology/slot.js';
import type { Context } from '../context.js';
import { Misuse, Problem } from '../problem.js';
import { FORMS, remedyFor, saidByRedis } from './remedy.js';
import { refuseMalformed } from './urls.js';

/** How long a server may take to answer; milliseconds. */
export const WITHIN = 5_000;
/** Between two tries to connect again, where the command goes on for ever; milliseconds. */
const AGAIN_AFTER = 1_000;
/** How many random keys are tried to find one that a master stores: the master may have only one of 16 384 slots. */
const TRIES = 200_000;

/** The fields of INFO, as far as this user may read them. */
export type Info = ReadonlyMap<string, string>;

/** A server that stores keys. */
interface RedisNode {
  readonly shown: string;
  /** A key that this server stores and that nobody holds. */
  readonly key: string;
  /** @throws Problem */
  info(): Promise<Info>;
}

/** A Redis server, or the Cluster that it belongs to. */
export class RedisServer {
  /** `host:port`, and the number of its database if that is not the first. */
  readonly shown: string;
  readonly #redis: Redis;
  readonly #inCluster: () => Cluster;
  #cluster: Cluster | undefined;

  private constructor(redis: Redis, inCluster: () => Cluster) {
    this.#redis = redis;
    this.#inCluster = inCluster;
    this.shown = shownOf(redis);
  }

  /** Not connected. @param lasting whether the command goes on for ever. @throws Problem if the URL is invalid */
  static async at(context: Context, url: string, lasting = false): Promise<RedisServer> {
    context.hide(url);
    refuseMalformed(url, 'Redis');
    if (!/^rediss?:\/\//.test(url)) {
      throw new Problem('The Redis URL must begin with redis:// or rediss://.', {
        remedy: `Write it as ${FORMS.redis}.`,
      });
    }
    // Loaded only by commands that connect to Redis.
    const driver = await import('ioredis').catch((cause: unknown) => {
      throw new Problem('This command needs the client of Redis.', {
        cause,
        remedy: 'Install it: npm install ioredis@6.',
      });
    });
    const malformed = new Problem(
      'The Redis URL cannot be read: check that it is one URL, that special characters in it are percent-encoded, and that ' +
        'its database is a number.',
    );
    let redis: Redis;
    try {
      redis = new driver.Redis(url, {
        enableReadyCheck: false,
        maxRetriesPerRequest: 0,
        connectTimeout: WITHIN,
        commandTimeout: WITHIN,
        lazyConnect: true,
        // A server that is down is reported at once.
        retryStrategy: () => (lasting ? AGAIN_AFTER : null),
      });
    } catch {
      // The message of ioredis may contain parts of the URL.
      throw malformed;
    }
    if (!/^\d+$/.test(String(redis.options.db))) throw malformed;
    return new RedisServer(redis, () => clusterOf(driver.Cluster, redis, lasting));
  }

  get client(): Redis | Cluster {
    return this.#cluster ?? this.#redis;
  }

  /** @throws Problem that says why the server cannot be used */
  async connect(): Promise<void> {
    const info = await connected(this.#redis);
    // A node of a Cluster knows the other nodes.
    if (info.get('cluster_enabled') === '1') this.#cluster = this.#inCluster();
  }

  /** The server itself, or each master that stores keys of this prefix, if the Cluster tells who serves the slots. */
  async nodes(keyPrefix: string): Promise<readonly RedisNode[]> {
    const cluster = this.#cluster;
    if (cluster?.status === 'wait') await cluster.connect().catch(() => {});
    const addresses = [...new Set(cluster?.slots.flatMap((nodes) => nodes?.[0] ?? []))];
    const masters = addresses.flatMap((shown) => {
      const key = keyAt(cluster as Cluster, shown, keyPrefix);
      return key === undefined ? [] : { shown, key, info: () => infoAt(this.#redis, shown) };
    });
    if (masters.length > 0) return masters;
    return [{ shown: this.shown, key: freshKey(), info: () => infoOf(this.#redis) }];
  }

  /** Resolves when what was sent has been answered. */
  async close(): Promise<void> {
    const ready = [this.#cluster, this.#redis].filter((client) => client?.status === 'ready');
    await Promise.allSettled(ready.map((client) => client?.quit()));
    this.#cluster?.disconnect();
    this.#redis.disconnect();
  }
}

/**
 * Connects to the servers of the application: one, or independent nodes, of which a majority decides. Unreachable ones are
 * only reported while the others are enough.
 *
 * @throws Problem
 */
export async function connectRedis(context: Context, servers: readonly RedisServer[]): Promise<void> {
  // Two databases of a server are not independent.
  const names = servers.map(({ shown }) => shown.replace(/\/\d+$/, ''));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new Misuse(`--redis-url leads to ${twice} twice: once for each node.`);
  const connecting = await Promise.allSettled(servers.map((server) => server.connect()));
  const failures = connecting.flatMap((each) => (each.status === 'rejected' ? [each.reason as Problem] : []));
  const cluster = servers.length > 1 && servers.find(({ client }) => client.isCluster);
  if (failures.length * 2 < servers.length && !cluster) {
    for (const { message } of failures) context.complain(`fenced-lock: ${message} The other nodes decide.`);
    return;
  }
  await Promise.all(servers.map((server) => server.close()));
  if (cluster) throw new Problem(`${cluster.shown} is a node of a Cluster: give --redis-url once, for any node.`);
  throw failures.length === 1 ? failures[0] : new Problem(failures.map(({ message }) => message).join(' '));
}

/** A Cluster client with the options of one node's URL. */
function clusterOf(Client: typeof Cluster, { options }: Redis, lasting: boolean): Cluster {
  const { host = 'localhost', port = 6379, keyPrefix, replyMapping, ...others } = options;
  const cluster = new Client([{ host, port }], {
    lazyConnect: true,
    // A Cluster that does not serve all keys still serves some.
    enableReadyCheck: false,
    clusterRetryStrategy: () => (lasting ? AGAIN_AFTER : null),
    ...(keyPrefix !== undefined && { keyPrefix }),
    redisOptions: { ...others, ...(replyMapping && { replyMapping }) },
  });
  cluster.on('error', () => {});
  return cluster;
}

/** @throws Problem */
async function connected(redis: Redis): Promise<Info> {
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  await redis.connect().catch((cause: unknown) => {
    throw problemAt(redis, ' cannot be reached', reason ?? cause);
  });
  // The application may have a user without this right.
  const info = await infoOf(redis).catch(() => new Map<string, string>());
  if (reason !== undefined) {
    // The SELECT failed, so the client would use another database.
    redis.disconnect();
    throw problemAt(redis, '', reason);
  }
  if ((info.get('redis_mode') ?? info.get('server_mode')) !== 'sentinel') return info;
  throw new Problem(
    `Redis at ${shownOf(redis)} is a Sentinel, which keeps no locks: give the URL of the primary. ` +
      'SENTINEL get-master-addr-by-name <name> says where that is.',
  );
}

function keyAt(cluster: Cluster, address: string, keyPrefix: string): string | undefined {
  const prefix = `${cluster.options.keyPrefix ?? ''}${keyPrefix}`;
  for (let tries = 0; tries < TRIES; tries++) {
    const key = freshKey();
    if (cluster.slots[slotOf(namesOf(prefix, key).lease)]?.[0] === address) return key;
  }
  return undefined;
}

/** Over a connection of its own to the node, which may be down. @throws Problem */
async function infoAt(one: Redis, address: string): Promise<Info> {
  const colon = address.lastIndexOf(':');
  const node = one.duplicate({ host: address.slice(0, colon), port: Number(address.slice(colon + 1)) });
  try {
    await connected(node);
    return await infoOf(node);
  } finally {
    node.disconnect();
  }
}

/** @throws Problem */
async function infoOf(redis: Redis): Promise<Info> {
  const text = await redis.info().catch((cause: unknown) => {
    throw problemAt(redis, '', cause);
  });
  return new Map([...text.matchAll(/^(\w+):([^\r\n]*)/gm)].map(([, name = '', value = '']) => [name, value]));
}

const problemAt = (redis: Redis, what: string, cause: unknown) =>
  new Problem(`Redis at ${shownOf(redis)}${what}: ${saidByRedis(cause)}.`, { cause, remedy: remedyFor(cause) });
const freshKey = () => `fenced-lock doctor ${crypto.randomUUID()}`;
const shownOf = ({ options: { host = 'localhost', port = 6379, db = 0 } }: Redis) =>
  `${host}:${port}${db === 0 ? '' : `/${db}`}`;
