import { afterAll, beforeAll, describe, test } from 'vitest';
import { inCI } from './ci.js';
import { type RedisOptions, type RedisServer, redisUnavailable, startRedis } from './servers/index.js';

/**
 * A suite with a Redis of its own. Where none can be had, one skipped test shows the reason; in CI, where there has to
 * be one, the suite fails. That is decided before any hook of the suite runs, so its hooks may use the server.
 */
export function describeWithRedis(
  name: string,
  suite: (redis: () => RedisServer) => void,
  options: RedisOptions = {},
): void {
  describe(name, async () => {
    const reason = inCI() ? undefined : await redisUnavailable(options);
    if (reason === undefined) suite(requireRedis(options));
    else test.skip(reason, () => {});
  });
}

/** The same without the choice: started before the tests of the current suite, which fail if there is none. */
export function requireRedis(options: RedisOptions = {}): () => RedisServer {
  let server: RedisServer | undefined;
  beforeAll(async () => {
    server = await startRedis(options);
  });
  afterAll(() => server?.stop());

  return () => {
    if (server === undefined) throw new Error('Redis is not started yet: use it in a test or in a hook.');
    return server;
  };
}
