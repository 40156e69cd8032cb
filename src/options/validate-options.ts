import { checkNames } from '../base/check-names.js';
import { InvalidOptionError } from '../base/errors.js';
import type { MemoryStore } from '../stores/memory.js';
import {
  BUILT_IN,
  DEFAULTS,
  type FencedLockOptions,
  OPTION_NAMES,
  type RedisLike,
  type ResolvedOptions,
} from './options.js';
import { processName } from './process-name.js';
import { choice, OF_A_CALL, resolveLockOptions, time } from './validate-call.js';

/** A process that is first in the queue and looks less often than this would delay all others; milliseconds. */
const LONGEST_POLL = 2_000;
const SHORTEST_POLL = 10;

/** Checks the options of the extension. @throws InvalidOptionError */
export function resolveOptions(options: FencedLockOptions): ResolvedOptions {
  if (typeof (options as { $extends?: unknown } | undefined)?.$extends === 'function') {
    throw new InvalidOptionError('options', 'were not given: write `.$extends(fencedLock({ redis }))`.');
  }
  if (typeof (options as { evalsha?: unknown } | undefined)?.evalsha === 'function') {
    throw new InvalidOptionError('options', 'is a Redis client: write `fencedLock({ redis })`.');
  }
  if (options === undefined || typeof options === 'string') {
    throw new InvalidOptionError('options', 'must have a client of Redis: `fencedLock({ redis: new Redis(url) })`.');
  }
  checkNames('options', options, OPTION_NAMES, OF_A_CALL);
  const { redis, wake, pollInterval, rescue, models, defaults, onEvent } = options;
  const { keyPrefix, fenceField, commandTimeout, fairness, passOnAfter, onRedisUnavailable } = options;
  const memory = memoryOf(redis);
  const clients = memory ? [] : nodes(redis as RedisLike | readonly RedisLike[]);
  for (const client of clients) checkKeyPrefix(client, keyPrefix);
  if (rescue !== undefined && typeof rescue?.connect !== 'function') {
    throw new InvalidOptionError('rescue', 'must be a driver adapter such as new PrismaPg({ connectionString }).');
  }
  if (models !== undefined && !(Array.isArray(models) && models.every((name) => typeof name === 'string'))) {
    throw new InvalidOptionError('models', 'must be a list of model names.');
  }
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw new InvalidOptionError('onEvent', 'must be a function.');
  }
  const how = choice('wake', wake ?? DEFAULTS.wake, ['pubsub', 'poll', 'spin']);
  if (how === 'pubsub' && pollInterval !== undefined) {
    throw new InvalidOptionError('pollInterval', "is of no use without `wake: 'poll'` or `wake: 'spin'`.");
  }
  return {
    redis: clients,
    memory,
    wake: memory ? 'pubsub' : how,
    pollInterval: time('pollInterval', pollInterval ?? DEFAULTS.pollInterval, SHORTEST_POLL, LONGEST_POLL),
    rescue,
    name: processName(options.name),
    keyPrefix: text('keyPrefix', keyPrefix ?? DEFAULTS.keyPrefix),
    fenceField: text('fenceField', fenceField ?? DEFAULTS.fenceField),
    models,
    commandTimeout: time('commandTimeout', commandTimeout ?? DEFAULTS.commandTimeout, 1),
    fairness: choice('fairness', fairness ?? DEFAULTS.fairness, ['process', 'strict']),
    passOnAfter: time('passOnAfter', passOnAfter ?? DEFAULTS.passOnAfter, 0),
    onRedisUnavailable: choice('onRedisUnavailable', onRedisUnavailable ?? DEFAULTS.onRedisUnavailable, [
      'throw',
      'postgres',
    ]),
    unsetKeyParts: choice('unsetKeyParts', options.unsetKeyParts ?? DEFAULTS.unsetKeyParts, ['throw', 'allow']),
    defaults: resolveLockOptions(defaults ?? {}, BUILT_IN),
    onEvent,
  };
}

/** By its mark: it may have been made by another copy of this package. */
function memoryOf(redis: unknown): MemoryStore | undefined {
  return (redis as Partial<MemoryStore> | null | undefined)?.kind === 'memory' ? (redis as MemoryStore) : undefined;
}

function nodes(redis: RedisLike | readonly RedisLike[]): readonly RedisLike[] {
  const clients: readonly RedisLike[] = Array.isArray(redis) ? [...redis] : [redis as RedisLike];
  if (clients.length === 0) throw new InvalidOptionError('redis', 'must name at least one client.');
  for (const client of clients) checkRedis(client);
  // A client that is listed twice would have two votes.
  if (new Set(clients).size < clients.length) {
    throw new InvalidOptionError('redis', 'names a client twice: each must be of a server of its own.');
  }
  const addresses = clients.map(addressOf);
  const twice = addresses.find((address, index) => address !== undefined && addresses.indexOf(address) < index);
  if (twice !== undefined) {
    throw new InvalidOptionError(
      'redis',
      `names the server ${twice} twice: each client must be of a server of its own.`,
    );
  }
  return clients;
}

/**
 * The address of a client of one server, in a form that is equal for equal addresses; `undefined` for other clients.
 */
function addressOf({ options }: RedisLike & AddressedLike): string | undefined {
  // With Sentinel or a Cluster, the address is discovered and may change.
  if (options === undefined || options.sentinels) return undefined;
  if (typeof options.path === 'string') return options.path;
  return typeof options.host === 'string' ? `${options.host.toLowerCase()}:${options.port}` : undefined;
}

interface AddressedLike {
  readonly options?: {
    readonly host?: unknown;
    readonly port?: unknown;
    readonly path?: unknown;
    readonly sentinels?: unknown;
  };
}

function checkRedis(redis: unknown): void {
  if (memoryOf(redis)) throw new InvalidOptionError('redis', 'must be a memory store alone, or a list of clients.');
  const client = redis as Partial<RedisLike & { mode: string }> | null | undefined;
  if (typeof client?.evalsha !== 'function' || typeof client.duplicate !== 'function') {
    const isNodeRedis = typeof (redis as { evalSha?: unknown } | null | undefined)?.evalSha === 'function';
    throw new InvalidOptionError(
      'redis',
      `must be an ioredis client, such as new Redis(url), a list of them, or memoryStore()${isNodeRedis ? ', and is one of node-redis' : ''}.`,
    );
  }
  if (client.mode !== undefined && client.mode !== 'normal') {
    throw new InvalidOptionError(
      'redis',
      `must be a client for commands, and this one is in ${client.mode} mode: give it one of its own.`,
    );
  }
}

/** An empty hash tag before this package's tag would make the Cluster hash the whole name. */
function checkKeyPrefix(redis: RedisLike & ClusterLike, keyPrefix = ''): void {
  if (redis.isCluster !== true || !`${redis.options?.keyPrefix ?? ''}${keyPrefix}`.includes('{}')) return;
  throw new InvalidOptionError('keyPrefix', 'must not have {} in it on a Cluster, nor the one of the client.');
}

interface ClusterLike {
  readonly isCluster?: boolean;
  readonly options?: { readonly keyPrefix?: string | undefined };
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return value;
  throw new InvalidOptionError(name, 'must be a text of at least one character.');
}
