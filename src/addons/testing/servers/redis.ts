import { dockerAnswers, startImage } from './docker.js';
import { ServerUnavailable } from './errors.js';
import { useExternalRedis } from './redis-external.js';
import { emulator, redisOnPath, startProgram } from './redis-process.js';
import type { RedisOptions, RedisServer } from './redis-server.js';

/** Real Redis or Valkey: the one of `REDIS_URL`, or the one on PATH, or one in Docker; an emulator only if allowed. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const start = await findRedis(options);
  if (start === undefined) throw new ServerUnavailable(UNAVAILABLE);
  return start();
}

/** Why `startRedis` would throw, in a sentence; undefined if it would not. */
export async function redisUnavailable(options: RedisOptions = {}): Promise<string | undefined> {
  return (await findRedis(options)) === undefined ? UNAVAILABLE : undefined;
}

const UNAVAILABLE =
  'No Redis: neither redis-server nor valkey-server is on PATH and Docker does not answer. ' +
  'Install one (apt-get install redis-server, brew install redis) or set REDIS_URL.';

async function findRedis({
  allowEmulator = false,
  args = [],
  clock,
}: RedisOptions): Promise<(() => Promise<RedisServer>) | undefined> {
  const given = process.env['REDIS_URL'];
  if (given !== undefined && given !== '') return () => useExternalRedis('REDIS_URL', given);

  const program = redisOnPath();
  if (program !== undefined) return () => startProgram({ ...program, clock }, args);

  if (await dockerAnswers()) return () => startContainer(args);
  // Its command line knows none of Redis's arguments.
  return allowEmulator ? () => startProgram(emulator(), []) : undefined;
}

async function startContainer(args: readonly string[]): Promise<RedisServer> {
  const { address, stop } = await startImage({
    name: 'redis:7-alpine',
    command: ['redis-server', '--save', '', '--appendonly', 'no', ...args],
    port: 6379,
    ready: ['Ready to accept connections', 1],
  });
  return useExternalRedis('testcontainers', `redis://${address}`, stop);
}
