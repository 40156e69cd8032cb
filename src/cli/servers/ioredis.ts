import type { Redis } from 'ioredis';
import { Problem } from '../problem.js';
import { FORMS, isLoginRefused, remedyFor, saidByRedis } from './remedy.js';
import { refuseMalformed } from './urls.js';

/** How long a server may take to answer; milliseconds. */
export const WITHIN = 5_000;

/** No retries: a server that is down is reported at once. */
const ONCE = {
  enableReadyCheck: false,
  maxRetriesPerRequest: 0,
  connectTimeout: WITHIN,
  commandTimeout: WITHIN,
  lazyConnect: true,
};

/** Loaded only by commands that connect to Redis. */
export async function loadClient(): Promise<Pick<typeof import('ioredis'), 'Cluster' | 'Redis'>> {
  return await import('ioredis').catch((cause: unknown) => {
    throw new Problem('This command needs the client of Redis.', {
      cause,
      remedy: 'Install it: npm install ioredis@6.',
    });
  });
}

/** @throws Problem if the URL is invalid. */
export function clientFor(Client: typeof Redis, url: string): Redis {
  refuseMalformed(url, 'Redis');
  if (!/^rediss?:\/\//.test(url)) {
    throw new Problem('The Redis URL must begin with redis:// or rediss://.', {
      remedy: `Write it as ${FORMS.redis}.`,
    });
  }
  let redis: Redis | undefined;
  try {
    redis = new Client(url, { ...ONCE, retryStrategy: () => null });
  } catch {
    // The message of ioredis may contain parts of the URL.
  }
  if (redis !== undefined && /^\d+$/.test(String(redis.options.db))) return redis;
  throw new Problem(
    'The Redis URL cannot be read: check that it is one URL, that special characters in it are percent-encoded, and that ' +
      'its database is a number.',
  );
}

interface Connected {
  /** Why the server cannot be used. */
  readonly failure?: Problem;
  /** The fields of INFO, as far as this user may read them. */
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
    const why = reason ?? cause;
    const what = isLoginRefused(why) ? 'refuses the login' : 'cannot be reached';
    const failure = new Problem(`Redis at ${shown} ${what}: ${saidByRedis(why)}.`, { cause, remedy: remedyFor(why) });
    return { failure, info: new Map() };
  }
  const info = parse(await redis.info().catch(() => ''));
  if (reason === undefined) return { info };
  // The SELECT failed, so the client would use another database.
  redis.disconnect();
  const failure = new Problem(`Redis at ${shown}: ${saidByRedis(reason)}.`, {
    cause: reason,
    remedy: remedyFor(reason),
  });
  return { failure, info: new Map() };
}

/** `host:port`, for messages. */
export function addressOf({ options: { host = 'localhost', port = 6379 } }: Redis): string {
  return `${host}:${port}`;
}

/** The same, and the number of its database if that is not the first. */
export function placeOf(redis: Redis): string {
  const { db } = redis.options;
  return db ? `${addressOf(redis)}/${db}` : addressOf(redis);
}

export function refusedAt(shown: string): (cause: unknown) => never {
  return (cause) => {
    throw new Problem(`Redis at ${shown}: ${saidByRedis(cause)}.`, { cause, remedy: remedyFor(cause) });
  };
}

export function infoOf(redis: Redis): Promise<Info> {
  return redis.info().then(parse, refusedAt(addressOf(redis)));
}

function parse(info: string): Info {
  const pairs = [...info.matchAll(/^(\w+):([^\r\n]*)/gm)];
  return new Map(pairs.map(([, name, value]) => [name ?? '', value ?? '']));
}
