import { hostname } from 'node:os';
import { checkNames } from '../base/check-names.js';
import { InvalidOptionError } from '../base/errors.js';
import { hasInvisible } from '../base/invisible.js';
import type { MemoryStore } from '../stores/memory.js';
import { BUILT_IN, DEFAULTS, type FencedLockOptions, type RedisLike, type ResolvedOptions } from './options.js';
import { choice, is, OF_A_CALL, OPTION_NAMES, resolveLockOptions, time } from './validate-call.js';

/** A process that is first in the queue and looks less often than this would delay all others; milliseconds. */
const LONGEST_POLL = 2_000;
const SHORTEST_POLL = 10;
/** Of the name of a process, which stands in the value of every lease, and in messages. */
const MOST_BYTES = 100;
/** Single spaces at most, and none around it. */
const SPACED = /^[^ ]+(?: [^ ]+)*$/;

/** Checks the options of the extension. @throws InvalidOptionError */
export function resolveOptions(options: FencedLockOptions): ResolvedOptions {
  const { $extends, evalsha } = (options ?? {}) as { readonly $extends?: unknown; readonly evalsha?: unknown };
  const given = typeof $extends !== 'function';
  is(given, 'options', options, 'were not given: write `.$extends(fencedLock({ redis }))`.');
  is(typeof evalsha !== 'function', 'options', options, 'is a Redis client: write `fencedLock({ redis })`.');
  const isThere = options !== undefined && typeof options !== 'string';
  is(isThere, 'options', options, 'must have a client of Redis: `fencedLock({ redis: new Redis(url) })`.');
  checkNames('options', options, OPTION_NAMES, OF_A_CALL);
  const defined = Object.entries(options).filter(([, value]) => value !== undefined);
  const all = { ...DEFAULTS, ...Object.fromEntries(defined) } as typeof DEFAULTS & FencedLockOptions;
  const { redis, rescue, models, onEvent, pollInterval } = all;
  const memory = memoryOf(redis);
  const clients = memory ? [] : nodes(redis as RedisLike | readonly RedisLike[]);
  for (const client of clients) checkKeyPrefix(client, all.keyPrefix);
  const isAdapter = rescue === undefined || typeof rescue?.connect === 'function';
  const areNames = models === undefined || (Array.isArray(models) && models.every((one) => typeof one === 'string'));
  const isListener = onEvent === undefined || typeof onEvent === 'function';
  const wake = choice('wake', all.wake, ['pubsub', 'poll', 'spin']);
  const mayPoll = wake !== 'pubsub' || options.pollInterval === undefined;
  is(mayPoll, 'pollInterval', pollInterval, "is of no use without `wake: 'poll'` or `wake: 'spin'`.");
  return {
    redis: clients,
    memory,
    wake: memory ? 'pubsub' : wake,
    pollInterval: time('pollInterval', pollInterval, SHORTEST_POLL, LONGEST_POLL),
    rescue: is(isAdapter, 'rescue', rescue, 'must be a driver adapter such as new PrismaPg({ connectionString }).'),
    name: processName(options.name),
    keyPrefix: text('keyPrefix', all.keyPrefix),
    fenceField: text('fenceField', all.fenceField),
    models: is(areNames, 'models', models, 'must be a list of model names.'),
    commandTimeout: time('commandTimeout', all.commandTimeout, 1),
    fairness: choice('fairness', all.fairness, ['process', 'strict']),
    passOnAfter: time('passOnAfter', all.passOnAfter, 0),
    onRedisUnavailable: choice('onRedisUnavailable', all.onRedisUnavailable, ['throw', 'postgres']),
    unsetKeyParts: choice('unsetKeyParts', all.unsetKeyParts, ['throw', 'allow']),
    defaults: resolveLockOptions(options.defaults ?? {}, BUILT_IN),
    onEvent: is(isListener, 'onEvent', onEvent, 'must be a function.'),
  };
}

/** What other processes are told of this one. By default the name of its machine, which its administrator chose, and its id. */
function processName(given: unknown): string {
  if (given === undefined) {
    const host = hostname().replace(/[^A-Za-z0-9._-]/g, '?') || '?';
    return `${host.slice(0, MOST_BYTES - 20)}:${process.pid}`;
  }
  const isName =
    typeof given === 'string' && Buffer.byteLength(given) <= MOST_BYTES && SPACED.test(given) && !hasInvisible(given);
  const must = `must be a text of 1 to ${MOST_BYTES} bytes of visible characters, with single spaces between them at most.`;
  return is(isName, 'name', given as string, must);
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

/** What of a client's own options is looked at. */
interface ClientLike {
  readonly isCluster?: boolean;
  readonly mode?: string;
  readonly options?: {
    readonly keyPrefix?: string | undefined;
    readonly host?: unknown;
    readonly port?: unknown;
    readonly path?: unknown;
    readonly sentinels?: unknown;
  };
}

/**
 * The address of a client of one server, in a form that is equal for equal addresses; `undefined` for other clients.
 */
function addressOf({ options }: RedisLike & ClientLike): string | undefined {
  // With Sentinel or a Cluster, the address is discovered and may change.
  if (options === undefined || options.sentinels) return undefined;
  if (typeof options.path === 'string') return options.path;
  return typeof options.host === 'string' ? `${options.host.toLowerCase()}:${options.port}` : undefined;
}

function checkRedis(redis: unknown): void {
  is(!memoryOf(redis), 'redis', redis, 'must be a memory store alone, or a list of clients.');
  const client = redis as (Partial<RedisLike> & ClientLike & { readonly evalSha?: unknown }) | null | undefined;
  const ofNodeRedis = typeof client?.evalSha === 'function' ? ', and is one of node-redis' : '';
  const isClient = typeof client?.evalsha === 'function' && typeof client.duplicate === 'function';
  const must = `must be an ioredis client, such as new Redis(url), a list of them, or memoryStore()${ofNodeRedis}.`;
  is(isClient, 'redis', redis, must);
  const mode = client?.mode ?? 'normal';
  const own = `must be a client for commands, and this one is in ${mode} mode: give it one of its own.`;
  is(mode === 'normal', 'redis', redis, own);
}

/** An empty hash tag before this package's tag would make the Cluster hash the whole name. */
function checkKeyPrefix({ isCluster, options }: RedisLike & ClientLike, keyPrefix: string): void {
  if (isCluster !== true || !`${options?.keyPrefix ?? ''}${keyPrefix}`.includes('{}')) return;
  throw new InvalidOptionError('keyPrefix', 'must not have {} in it on a Cluster, nor the one of the client.');
}

function text(name: string, value: unknown): string {
  const isText = typeof value === 'string' && value !== '' && !value.includes('\0');
  return is(isText, name, value as string, 'must be a text of at least one character.');
}
