import type { Redis } from 'ioredis';
import { messageOf, Problem } from '../problem.js';

/** How long a server may take to answer; milliseconds. */
export const WITHIN = 5_000;

/** It asks once: a server that is down must be reported, not waited for. */
const ONCE = {
  enableReadyCheck: false,
  maxRetriesPerRequest: 0,
  connectTimeout: WITHIN,
  commandTimeout: WITHIN,
  lazyConnect: true,
};

/** Loaded only by the commands that connect. */
export async function loadClient(): Promise<Pick<typeof import('ioredis'), 'Cluster' | 'Redis'>> {
  return await import('ioredis').catch((cause: unknown) => {
    throw new Problem('This command needs the client of Redis: npm install ioredis@6.', { cause });
  });
}

/** @throws Problem where the URL is none */
export function clientFor(Client: typeof Redis, url: string): Redis {
  if (!/^rediss?:\/\//.test(url)) throw new Problem('The Redis URL must begin with redis:// or rediss://.');
  let redis: Redis | undefined;
  try {
    redis = new Client(url, { ...ONCE, retryStrategy: () => null });
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
  /** Why it cannot be used. */
  readonly failure?: Problem;
  /** What INFO says, as far as this user may ask for it. */
  readonly info: Info;
}

export type Info = ReadonlyMap<string, string>;

export async function connected(redis: Redis): Promise<Connected> {
  const shown = addressOf(redis);
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

/** `host:port`, as messages may show it. */
export function addressOf({ options: { host = 'localhost', port = 6379 } }: Redis): string {
  return `${host}:${port}`;
}

export function refusedAt(shown: string): (cause: unknown) => never {
  return (cause) => {
    throw new Problem(`Redis at ${shown}: ${messageOf(cause)}`, { cause });
  };
}

export function infoOf(redis: Redis): Promise<Info> {
  return redis.info().then(parse, refusedAt(addressOf(redis)));
}

function parse(info: string): Info {
  const pairs = [...info.matchAll(/^(\w+):([^\r\n]*)/gm)];
  return new Map(pairs.map(([, name, value]) => [name ?? '', value ?? '']));
}
