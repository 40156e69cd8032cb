import type { Redis } from 'ioredis';
import type { Context } from '../context.js';
import { messageOf, Problem } from '../problem.js';

/** What doctor needs of a Redis server. */
export interface RedisServer {
  /** `host:port`, as messages may show it. */
  readonly shown: string;
  /** What INFO says. */
  info(): Promise<ReadonlyMap<string, string>>;
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
  return { shown, info: async () => parse(await redis.info()), close: () => redis.disconnect() };
}

/** Loaded only by doctor. It asks once: a server that is down must be reported, not waited for. */
async function client(url: string): Promise<Redis> {
  const module = await import('ioredis').catch((cause: unknown) => {
    throw new Problem('To look at Redis, doctor needs its client: npm install ioredis@6.', { cause });
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
