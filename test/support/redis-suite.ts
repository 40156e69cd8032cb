import { inject } from 'vitest';
import { type RedisOptions, type RedisServer, startRedis } from './servers/index.js';
import { describeWithGroup, started } from './site-suite.js';

/** A suite with a Redis of its own. Where none can be had, one skipped test shows the reason. */
export function describeWithRedis(
  name: string,
  suite: (redis: () => RedisServer) => void,
  options: RedisOptions = {},
): void {
  describeWithGroup(name, () => startRedis(options), suite, inject('redis').reason);
}

/** Started before the tests of the current suite. */
export function requireRedis(): () => RedisServer {
  return started(startRedis);
}
