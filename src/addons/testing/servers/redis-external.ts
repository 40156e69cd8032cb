import { ServerUnavailable, unsupervised } from './errors.js';
import { versionOf } from './redis-ping.js';
import type { RedisServer } from './redis-server.js';

/** A server that is not ours, and that may have other users: nothing in it is emptied, so tests need keys of their own. */
export async function useExternalRedis(
  kind: 'REDIS_URL' | 'testcontainers',
  url: string,
  stop: () => Promise<void> = async () => {},
): Promise<RedisServer> {
  const version = await versionOf(url).catch((cause: unknown) => {
    const instead =
      kind === 'REDIS_URL' ? ' Start it, or unset REDIS_URL, so that the tests start one of their own.' : '';
    throw new ServerUnavailable(`No Redis: the server of ${kind} does not answer.${instead}`, { cause });
  });
  return {
    kind,
    ...unsupervised(kind),
    version,
    url,
    host: new URL(url).hostname,
    port: Number(new URL(url).port || 6379),
    pid: undefined,
    stop,
  };
}
