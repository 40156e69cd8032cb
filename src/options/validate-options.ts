import { LONGEST_TIME } from '../base/clock.js';
import { InvalidOptionError } from '../base/errors.js';
import type { MemoryStore } from '../lease/stores/memory.js';
import {
  DEFAULTS,
  type FencedLockOptions,
  type LockOptions,
  type OnceOptions,
  type RedisLike,
  type ResolvedLockOptions,
  type ResolvedOptions,
  type Schedule,
  type TransactionOptions,
} from './options.js';

/** The shortest lease that a renewal at a third of its time can hold over a network. */
const SHORTEST_LEASE = 100;
/** A shorter one is over before its callers have been answered. */
const SHORTEST_INTERVAL = 100;
const MOST_RETRIES = 100;
const MOST_HANDOVERS = 1_000_000;
/** A queue whose first takes longer than this to come would hold up all others. */
const LONGEST_POLL = 2_000;
const SHORTEST_POLL = 10;
const ISOLATION_LEVELS = ['ReadUncommitted', 'ReadCommitted', 'RepeatableRead', 'Serializable'];

const OPTION_NAMES: readonly (keyof FencedLockOptions)[] = [
  'redis',
  'wake',
  'pollInterval',
  'rescue',
  'keyPrefix',
  'fenceField',
  'models',
  'commandTimeout',
  'fairness',
  'maxLocalHandovers',
  'onRedisUnavailable',
  'unsetKeyParts',
  'defaults',
  'onEvent',
];
const LOCK_OPTION_NAMES: readonly (keyof LockOptions)[] = [
  'waitTime',
  'leaseTime',
  'renew',
  'timeout',
  'signal',
  'reentry',
  'nested',
  'retries',
  'hookErrors',
  'isolationLevel',
  'maxWait',
];

const TRANSACTION_OPTION_NAMES: readonly (keyof TransactionOptions)[] = [
  'waitTime',
  'timeout',
  'signal',
  'nested',
  'retries',
  'hookErrors',
  'isolationLevel',
  'maxWait',
];

const ONCE_OPTION_NAMES: readonly (keyof OnceOptions)[] = [
  'atLeast',
  'offset',
  ...LOCK_OPTION_NAMES.filter((name) => name !== 'waitTime' && name !== 'reentry'),
];

/** Checks the options of the extension. @throws InvalidOptionError */
export function resolveOptions(options: FencedLockOptions): ResolvedOptions {
  checkNames('options', options, OPTION_NAMES);
  const { redis, wake, pollInterval, rescue, models, defaults, onEvent } = options;
  const { keyPrefix, fenceField, commandTimeout, fairness, maxLocalHandovers, onRedisUnavailable } = options;
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
    keyPrefix: text('keyPrefix', keyPrefix ?? DEFAULTS.keyPrefix),
    fenceField: text('fenceField', fenceField ?? DEFAULTS.fenceField),
    models,
    commandTimeout: time('commandTimeout', commandTimeout ?? DEFAULTS.commandTimeout, 1),
    fairness: choice('fairness', fairness ?? DEFAULTS.fairness, ['process', 'strict']),
    maxLocalHandovers: count('maxLocalHandovers', maxLocalHandovers ?? DEFAULTS.maxLocalHandovers, MOST_HANDOVERS),
    onRedisUnavailable: choice('onRedisUnavailable', onRedisUnavailable ?? DEFAULTS.onRedisUnavailable, [
      'throw',
      'postgres',
    ]),
    unsetKeyParts: choice('unsetKeyParts', options.unsetKeyParts ?? DEFAULTS.unsetKeyParts, ['throw', 'allow']),
    defaults: resolveLockOptions(defaults ?? {}, BUILT_IN),
    onEvent,
  };
}

/** Checks the options of a handle's transaction. @throws InvalidOptionError */
export function resolveTransactionOptions(
  options: TransactionOptions,
  defaults: ResolvedLockOptions,
): ResolvedLockOptions {
  checkNames('options', options, TRANSACTION_OPTION_NAMES);
  return resolveLockOptions(options, defaults);
}

/** Takes what says when a job runs from the options of `$oncePer`. @throws InvalidOptionError */
export function resolveSchedule(given: unknown, options: OnceOptions): { schedule: Schedule; rest: LockOptions } {
  const interval = time('interval', given, SHORTEST_INTERVAL);
  checkNames('options', options, ONCE_OPTION_NAMES);
  const { atLeast = 0, offset = 0, ...rest } = options;
  const within = { atLeast: time('atLeast', atLeast, 0, interval), offset: time('offset', offset, 0, interval - 1) };
  return { schedule: { interval, ...within }, rest };
}

/** Checks the options of a call. @throws InvalidOptionError */
export function resolveLockOptions(options: LockOptions, defaults: ResolvedLockOptions): ResolvedLockOptions {
  checkNames('options', options, LOCK_OPTION_NAMES);
  if (Object.keys(options).length === 0) return defaults;
  const waitTime = time('waitTime', options.waitTime ?? defaults.waitTime, 0);
  const leaseTime = time('leaseTime', options.leaseTime ?? defaults.leaseTime, SHORTEST_LEASE);
  const timeout = time('timeout', options.timeout ?? defaults.timeout, 1);
  const givenWait = options.maxWait ?? defaults.maxWait;
  const maxWait = givenWait === undefined ? undefined : time('maxWait', givenWait, 1);
  const renew = options.renew ?? defaults.renew;
  if (typeof renew !== 'boolean') throw new InvalidOptionError('renew', 'must be true or false.');
  const signal = options.signal ?? defaults.signal;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidOptionError('signal', 'must be an AbortSignal.');
  }
  const isolationLevel = options.isolationLevel ?? defaults.isolationLevel;
  if (isolationLevel !== undefined && !ISOLATION_LEVELS.includes(isolationLevel)) {
    throw new InvalidOptionError('isolationLevel', `must be one of ${ISOLATION_LEVELS.join(', ')}.`);
  }
  const reentry = choice('reentry', options.reentry ?? defaults.reentry, ['join', 'throw']);
  const nested = choice('nested', options.nested ?? defaults.nested, ['throw', 'allow']);
  const retries = count('retries', options.retries ?? defaults.retries, MOST_RETRIES);
  const hookErrors = choice('hookErrors', options.hookErrors ?? defaults.hookErrors, ['event', 'throw']);
  return { waitTime, leaseTime, renew, timeout, signal, reentry, nested, retries, hookErrors, isolationLevel, maxWait };
}

const BUILT_IN: ResolvedLockOptions = {
  waitTime: DEFAULTS.waitTime,
  leaseTime: DEFAULTS.leaseTime,
  renew: DEFAULTS.renew,
  timeout: DEFAULTS.timeout,
  reentry: DEFAULTS.reentry,
  nested: DEFAULTS.nested,
  retries: DEFAULTS.retries,
  hookErrors: DEFAULTS.hookErrors,
  signal: undefined,
  isolationLevel: undefined,
  maxWait: undefined,
};

/** By its mark: it may have been made by another copy of this package. */
function memoryOf(redis: unknown): MemoryStore | undefined {
  return (redis as Partial<MemoryStore> | null | undefined)?.kind === 'memory' ? (redis as MemoryStore) : undefined;
}

function nodes(redis: RedisLike | readonly RedisLike[]): readonly RedisLike[] {
  const clients: readonly RedisLike[] = Array.isArray(redis) ? [...redis] : [redis as RedisLike];
  if (clients.length === 0) throw new InvalidOptionError('redis', 'must name at least one client.');
  for (const client of clients) checkRedis(client);
  // It would have two votes.
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

/** Of a client of one server that is given by its address; a text that is the same for the same one. */
function addressOf({ options }: RedisLike & AddressedLike): string | undefined {
  // By Sentinel or in a Cluster the address is found out, and may change.
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
    throw new InvalidOptionError('redis', 'must be an ioredis client, such as new Redis(url), or a list of clients.');
  }
  if (client.mode !== undefined && client.mode !== 'normal') {
    throw new InvalidOptionError(
      'redis',
      `must be a client for commands, and this one is in ${client.mode} mode: give it one of its own.`,
    );
  }
}

/** An empty hash tag stands before ours, and says that the whole name decides on the slot. */
function checkKeyPrefix(redis: RedisLike & ClusterLike, keyPrefix = ''): void {
  if (redis.isCluster !== true || !`${redis.options?.keyPrefix ?? ''}${keyPrefix}`.includes('{}')) return;
  throw new InvalidOptionError('keyPrefix', 'must not have {} in it on a Cluster, nor the one of the client.');
}

interface ClusterLike {
  readonly isCluster?: boolean;
  readonly options?: { readonly keyPrefix?: string | undefined };
}

function checkNames(what: string, options: unknown, known: readonly string[]): void {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw new InvalidOptionError(what, 'must be an object.');
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new InvalidOptionError(unknown, `is not an option here; there are ${known.join(', ')}.`);
  }
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return value;
  throw new InvalidOptionError(name, 'must be a text of at least one character.');
}

/** Whether a lease time that somebody else has chosen is one that we would. */
export function isLeaseTime(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= SHORTEST_LEASE && (value as number) <= LONGEST_TIME;
}

function choice<const Choice extends string>(name: string, value: Choice, choices: readonly Choice[]): Choice {
  if (choices.includes(value)) return value;
  throw new InvalidOptionError(name, `must be ${choices.map((one) => `'${one}'`).join(' or ')}.`);
}

function count(name: string, value: number, most: number): number {
  if (Number.isInteger(value) && value >= 0 && value <= most) return value;
  throw new InvalidOptionError(name, `must be a whole number from 0 to ${most}.`);
}

function time(name: string, value: unknown, least: number, most = LONGEST_TIME): number {
  // Whole, because Redis takes no fractions: what is left of a time is often computed from a clock that has them.
  if (typeof value === 'number' && value >= least && value <= most) return Math.round(value);
  const instead = value === Number.POSITIVE_INFINITY ? ` Instead of Infinity give the largest value, ${most}.` : '';
  throw new InvalidOptionError(name, `must be a number of milliseconds from ${least} to ${most}.${instead}`);
}
