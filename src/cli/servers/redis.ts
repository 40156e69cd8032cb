import type { Cluster, Redis } from 'ioredis';
import type { LeaseStore } from '../../lease/store.js';
import type { ClusterClient, RedisClient } from '../../redis/client.js';
import { RedisStore } from '../../redis/store.js';
import type { Context } from '../context.js';
import { messageOf, Problem } from '../problem.js';

/** What the commands need of leases and queues. Each of them throws a Problem where Redis refuses. */
export type Locks = Pick<LeaseStore, 'inspect' | 'list' | 'force'>;

/** What the commands need of a Redis server. */
export interface RedisServer {
  /** `host:port`, as messages may show it. */
  readonly shown: string;
  /** What INFO says. */
  info(): Promise<ReadonlyMap<string, string>>;
  /** Those whose names begin with `keyPrefix`. */
  locks(keyPrefix: string): Locks;
  /** The same as the application has them, refusals included. */
  store(keyPrefix: string, options?: StoreOptions): LeaseStore;
  close(): void;
}

interface StoreOptions {
  /** `false`: they are neither published nor heard. */
  readonly wakeUps?: boolean;
  readonly offerTime?: number;
}

const WITHIN = 5_000;

/** One that was tried to connect to. */
export interface Opened extends RedisServer {
  readonly ofCluster: boolean;
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
export async function openRedis(context: Context, url: string): Promise<Opened> {
  context.hide(url);
  if (!/^rediss?:\/\//.test(url)) throw new Problem('The Redis URL must begin with redis:// or rediss://.');
  const { Cluster, Redis } = await loadClient();
  const redis = clientFor(Redis, url);
  const shown = `${redis.options.host ?? 'localhost'}:${redis.options.port ?? 6379}`;
  const { failure, info } = await connected(redis, shown);
  // One node of a Cluster knows the way to the others.
  const cluster = info.get('cluster_enabled') === '1' ? clusterOf(Cluster, redis) : undefined;
  const client = (cluster ?? redis) as unknown as RedisClient | ClusterClient;
  const store = (keyPrefix: string, { wakeUps = true, offerTime }: StoreOptions = {}) =>
    new RedisStore(
      client,
      { keyPrefix, commandTimeout: WITHIN, wakeUps, ...(offerTime !== undefined && { offerTime }) },
      () => {},
    );
  return {
    shown,
    failure,
    ofCluster: cluster !== undefined,
    info: async () => parse(await redis.info().catch(refusedAt(shown))),
    locks: (keyPrefix) => locksOn(store(keyPrefix), shown),
    store,
    close: () => {
      cluster?.disconnect();
      redis.disconnect();
    },
  };
}

function clientFor(Client: typeof Redis, url: string): Redis {
  let redis: Redis | undefined;
  try {
    redis = new Client(url, { ...ONCE, retryStrategy: () => null, lazyConnect: true });
  } catch {
    // Its own message is of the URL's parts.
  }
  if (redis !== undefined && /^\d+$/.test(String(redis.options.db))) return redis;
  throw new Problem(
    'The Redis URL cannot be read: check that it is one URL, that special characters in it are percent-encoded, and that ' +
      'its database is a number.',
  );
}

interface Connected {
  readonly failure?: Problem;
  readonly info: ReadonlyMap<string, string>;
}

async function connected(redis: Redis, shown: string): Promise<Connected> {
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
  } catch (cause) {
    redis.disconnect();
    const failure = new Problem(`Redis at ${shown} cannot be reached: ${messageOf(reason ?? cause)}.`, { cause });
    return { failure, info: new Map() };
  }
  const info = parse(await redis.info().catch(() => ''));
  if (reason === undefined) return { info };
  // The client goes on in another database than the one that it was to select.
  redis.disconnect();
  return { failure: new Problem(`Redis at ${shown}: ${messageOf(reason)}.`, { cause: reason }), info: new Map() };
}

/** With all that the URL says. */
function clusterOf(Client: typeof Cluster, { options }: Redis): Cluster {
  const { host = 'localhost', port = 6379, keyPrefix, replyMapping, ...others } = options;
  const cluster = new Client([{ host, port }], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    ...(keyPrefix !== undefined && { keyPrefix }),
    redisOptions: { ...others, ...(replyMapping && { replyMapping }) },
  });
  cluster.on('error', () => {});
  return cluster;
}

/** Whose failures are Problems. */
export function locksOn(store: LeaseStore, shown: string): Locks {
  const refused = refusedAt(shown);
  return {
    inspect: (key) => store.inspect(key).catch(refused),
    list: () => store.list().catch(refused),
    force: (key, holder) => store.force(key, holder).catch(refused),
  };
}

function refusedAt(shown: string): (cause: unknown) => never {
  return (cause) => {
    throw new Problem(`Redis at ${shown}: ${messageOf(cause)}`, { cause });
  };
}

/** It asks once: a server that is down must be reported, not waited for. */
const ONCE = {
  enableReadyCheck: false,
  maxRetriesPerRequest: 0,
  connectTimeout: WITHIN,
  commandTimeout: WITHIN,
};

/** Loaded only by the commands that connect. */
async function loadClient(): Promise<Pick<typeof import('ioredis'), 'Cluster' | 'Redis'>> {
  return await import('ioredis').catch((cause: unknown) => {
    throw new Problem('This command needs the client of Redis: npm install ioredis@6.', { cause });
  });
}

function parse(info: string): Map<string, string> {
  const pairs = [...info.matchAll(/^(\w+):([^\r\n]*)/gm)];
  return new Map(pairs.map(([, name, value]) => [name ?? '', value ?? '']));
}
