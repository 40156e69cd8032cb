import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import { type RedisOptions, type RedisServer, startRedis } from './servers/index.js';

/** A suite with a Redis of its own. Where none can be had, one skipped test shows the reason. */
export function describeWithRedis(
  name: string,
  suite: (redis: () => RedisServer) => void,
  options: RedisOptions = {},
): void {
  const { url, reason } = inject('redis');
  describe(name, () => {
    if (url === undefined) test.skip(reason, () => {});
    else suite(requireRedis(options));
  });
}

/** Started before the tests of the current suite. */
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
