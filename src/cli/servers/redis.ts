import type { Redis } from 'ioredis';
import type { LeaseStore } from '../../lease/store.js';
import type { RedisClient } from '../../redis/client.js';
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
  store(keyPrefix: string): LeaseStore;
  close(): void;
}

const WITHIN = 5_000;

/** @throws Problem where it cannot be reached */
export async function connectRedis(context: Context, url: string): Promise<RedisServer> {
  context.hide(url);
  if (!/^rediss?:\/\//.test(url)) throw new Problem('The Redis URL must begin with redis:// or rediss://.');
  const redis = await client(url);
  const shown = `${redis.options.host ?? 'localhost'}:${redis.options.port ?? 6379}`;
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  await redis.connect().catch((error: unknown) => {
    redis.disconnect();
    throw new Problem(`Redis at ${shown} cannot be reached: ${messageOf(reason ?? error)}.`, { cause: error });
  });
  return {
    shown,
    info: async () => parse(await redis.info().catch(refusedAt(shown))),
    locks: (keyPrefix) => locksOn(storeOn(redis, keyPrefix), shown),
    store: (keyPrefix) => storeOn(redis, keyPrefix),
    close: () => redis.disconnect(),
  };
}

function storeOn(redis: Redis, keyPrefix: string): RedisStore {
  return new RedisStore(redis as unknown as RedisClient, { keyPrefix, commandTimeout: WITHIN }, () => {});
}

function locksOn(store: LeaseStore, shown: string): Locks {
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

/** Loaded only by the commands that connect. It asks once: a server that is down must be reported, not waited for. */
async function client(url: string): Promise<Redis> {
  const module = await import('ioredis').catch((cause: unknown) => {
    throw new Problem('This command needs the client of Redis: npm install ioredis@6.', { cause });
  });
  return new module.Redis(url, {
    lazyConnect: true,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: WITHIN,
    commandTimeout: WITHIN,
  });
}

function parse(info: string): Map<string, string> {
  const pairs = [...info.matchAll(/^(\w+):([^\r\n]*)/gm)];
  return new Map(pairs.map(([, name, value]) => [name ?? '', value ?? '']));
}
