import { dirname, join } from 'node:path';
import type { Redis } from 'ioredis';
import { startImage } from './docker.js';
import { onPath, resolveFromProject } from './programs.js';
import { type Server, ServerUnavailable } from './server.js';
import { HOST, type Recipe, Supervised } from './supervised.js';

export interface RedisOptions {
  /** js-redis-server, which only imitates Redis: good enough to show something, proves nothing. */
  readonly allowEmulator?: boolean;
  /** More arguments for a server that is started here. It must still answer INFO without a password. */
  readonly args?: readonly string[];
  readonly env?: Recipe['env'];
}

/**
 * Real Redis or Valkey: the one of `REDIS_URL`, or the one on PATH, or one in Docker; an emulator only if allowed. Nothing is
 * saved: one that is started again is empty.
 */
export async function startRedis({ allowEmulator = false, args = [], env }: RedisOptions = {}): Promise<Server> {
  const given = process.env['REDIS_URL'];
  if (given) return await useExternal('REDIS_URL', given);
  const program = redisOnPath();
  if (program !== undefined) return await startProgram({ ...program, env }, args);
  const container = await startImage({
    name: 'redis:7-alpine',
    command: ['redis-server', '--save', '', '--appendonly', 'no', ...args],
    port: 6379,
    ready: ['Ready to accept connections', 1],
  });
  if (container !== undefined)
    return await useExternal('testcontainers', `redis://${container.address}`, container.stop);
  // Its command line knows none of Redis's arguments.
  if (allowEmulator) return await startProgram(emulator(), []);
  throw new ServerUnavailable(
    'No Redis: neither redis-server nor valkey-server is on PATH, and Docker does not answer, or the npm package ' +
      'testcontainers is missing. Install one (apt-get install redis-server, brew install redis) or set REDIS_URL.',
  );
}

/** A server that is not ours, and that may have other users: nothing in it is emptied, so tests need keys of their own. */
async function useExternal(
  kind: 'REDIS_URL' | 'testcontainers',
  url: string,
  stop: () => Promise<void> = async () => {},
): Promise<Server> {
  const info = await infoOf(url).catch((cause: unknown) => {
    const instead =
      kind === 'REDIS_URL' ? ' Start it, or unset REDIS_URL, so that the tests start one of their own.' : '';
    throw new ServerUnavailable(`No Redis: the server of ${kind} does not answer.${instead}`, { cause });
  });
  return { kind, version: versionIn(info), url, stop };
}

export type RedisProgram = Pick<Recipe, 'kind' | 'command' | 'args' | 'env'>;

export function redisOnPath(
  kinds: readonly ('redis-server' | 'valkey-server')[] = ['redis-server', 'valkey-server'],
): RedisProgram | undefined {
  for (const kind of kinds) {
    const command = onPath(kind);
    if (command === undefined) continue;
    return {
      kind,
      command,
      args: (port, dir) => ['--port', `${port}`, '--bind', HOST, '--save', '', '--appendonly', 'no', '--dir', dir],
    };
  }
  return undefined;
}

/** A process of its own, so that it can be frozen and killed like the real one. */
function emulator(): RedisProgram {
  const main = resolveFromProject('js-redis-server');
  return {
    kind: 'emulator',
    command: process.execPath,
    args: (port) => [join(dirname(main), 'cli.js'), '--port', `${port}`],
  };
}

export async function startProgram(program: RedisProgram, more: readonly string[]): Promise<Supervised> {
  return await Supervised.start({
    ...program,
    args: (port, dir) => [...program.args(port, dir), ...more],
    url: (port) => `redis://${HOST}:${port}`,
    async ready({ url, pid }) {
      const info = await infoOf(url);
      // The emulator invents its process id.
      const isOurs = program.kind === 'emulator' || info.includes(`process_id:${pid}\r\n`);
      if (!isOurs) throw new Error('another server answers');
      return versionIn(info);
    },
    endSignal: 'SIGTERM',
  });
}

const infoOf = async (url: string) => String(await askServer(url, 'INFO', 'server'));

/** Valkey also says which Redis it is compatible with. */
function versionIn(info: string): string {
  return (/valkey_version:(\S+)/.exec(info) ?? /redis_version:(\S+)/.exec(info))?.[1] ?? 'unknown';
}

/** One command on a connection of its own; rejects soon where nobody answers. */
export async function askServer(url: string, ...words: [string, ...string[]]): Promise<unknown> {
  return await onRedis(url, (redis) => redis.call(...words));
}

/** Work on a connection of its own. */
export async function onRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    // What the questions about topologies are written for.
    protocol: 2,
  });
  // connect() rejects with the same error.
  redis.on('error', () => {});
  try {
    await redis.connect();
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
