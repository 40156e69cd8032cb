import { Cluster, Redis, type RedisOptions } from 'ioredis';

/** Where a Redis is and of what kind: plain data, that goes to worker processes. */
export type RedisSite =
  | { readonly kind: 'single'; readonly url: string }
  | {
      readonly kind: 'sentinel';
      readonly name: string;
      readonly sentinels: readonly Address[];
      readonly natMap?: NatMap;
    }
  | { readonly kind: 'cluster'; readonly nodes: readonly Address[]; readonly natMap?: NatMap }
  | { readonly kind: 'quorum'; readonly urls: readonly string[] };

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Which way leads to a node, by the `host:port` that the servers call it. */
type NatMap = Readonly<Record<string, Address>>;

export interface Connection {
  /** What `fencedLock({ redis })` takes. */
  readonly redis: Redis | Cluster | Redis[];
  close(): void;
}

/** A node that died or is frozen is left soon, and not waited for. */
const SOON = { commandTimeout: 500, connectTimeout: 1_000, disconnectTimeout: 200 } as const satisfies RedisOptions;

/** With the settings that the docs recommend; `more`: of each connection. */
export function connectTo(site: RedisSite, more: Pick<RedisOptions, 'connectionName'> = {}): Connection {
  switch (site.kind) {
    case 'single':
      return one(quiet(new Redis(site.url, more)));
    case 'sentinel':
      return one(
        quiet(
          new Redis({
            name: site.name,
            sentinels: [...site.sentinels],
            failoverDetector: true,
            sentinelCommandTimeout: 500,
            retryStrategy: (times) => Math.min(times * 50, 250),
            ...(site.natMap && { natMap: site.natMap }),
            ...SOON,
            ...more,
          }),
        ),
      );
    case 'cluster':
      return one(
        quiet(
          new Cluster([...site.nodes], {
            slotsRefreshInterval: 1_000,
            slotsRefreshTimeout: 500,
            redisOptions: { ...SOON, ...more },
            ...(site.natMap && { natMap: site.natMap }),
          }),
        ),
      );
    case 'quorum': {
      const nodes = site.urls.map((url) => quiet(new Redis(url, more)));
      return {
        redis: nodes,
        close: () => {
          for (const node of nodes) node.disconnect();
        },
      };
    }
  }
}

function one(redis: Redis | Cluster): Connection {
  return { redis, close: () => redis.disconnect() };
}

/** Servers are killed on purpose; the commands that fail by it say so themselves. */
function quiet<Client extends Redis | Cluster>(client: Client): Client {
  client.on('error', () => {});
  return client;
}
