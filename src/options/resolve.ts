import { hostname } from 'node:os';
import { checkNames, type Elsewhere, ensure, kindOf } from '../base/checks.js';
import { LONGEST_TIME } from '../base/clock.js';
import { InvalidOptionError } from '../base/errors.js';
import { hasInvisible } from '../base/invisible.js';
import type { MemoryStore } from '../stores/memory.js';
import {
  CALL_DEFAULTS,
  DEFAULTS,
  type FencedLockOptions,
  type LockOptions,
  type OnceOptions,
  type RedisLike,
  type ResolvedLockOptions,
  type ResolvedOptions,
  type Schedule,
  SHORTEST_LEASE,
  type TransactionOptions,
} from './options.js';

/** A shorter one is over before its callers have been answered. */
const SHORTEST_INTERVAL = 100;
const MOST_RETRIES = 100;
/** A process that is first in the queue and looks less often than this would delay all others; milliseconds. */
const LONGEST_POLL = 2_000;
const SHORTEST_POLL = 10;
/** Of the name of a process, which stands in the value of every lease, and in messages. */
const MOST_BYTES = 100;
/** Single spaces at most, and none around it. */
const SPACED = /^[^ ]+(?: [^ ]+)*$/;

/** Returns the value to use for one that is given. @throws InvalidOptionError */
type Check<Value> = (name: string, value: NonNullable<Value>) => Value;
type Checks<Options> = { readonly [Name in keyof Options]-?: Check<Options[Name]> };

const isFunction = (value: unknown) => typeof value === 'function';
const isText = (value: unknown) => typeof value === 'string' && value !== '' && !value.includes('\0');
const text = must<string | undefined>(isText, 'must be a text of at least one character.');
const isProcessName = (name: unknown) =>
  typeof name === 'string' && Buffer.byteLength(name) <= MOST_BYTES && SPACED.test(name) && !hasInvisible(name);

/** What each option of a call has to be. One that is missing here does not compile. */
const OF_EACH_CALL: Checks<LockOptions> = {
  waitTime: time(0),
  leaseTime: time(SHORTEST_LEASE),
  renew: must((value) => typeof value === 'boolean', 'must be true or false.'),
  timeout: time(1),
  signal: must((value) => value instanceof AbortSignal, 'must be an AbortSignal.'),
  reentry: choice('join', 'throw'),
  nested: choice('throw', 'allow'),
  retries: must(
    (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MOST_RETRIES,
    `must be a whole number from 0 to ${MOST_RETRIES}.`,
  ),
  hookErrors: choice('event', 'throw'),
  isolationLevel: choice('ReadUncommitted', 'ReadCommitted', 'RepeatableRead', 'Serializable'),
  maxWait: time(1),
};

/** The same for the options of the client, but for `redis`. */
const OF_THE_CLIENT: Checks<Omit<FencedLockOptions, 'redis'>> = {
  wake: choice('pubsub', 'poll', 'spin'),
  pollInterval: time(SHORTEST_POLL, LONGEST_POLL),
  rescue: must(
    (value) => isFunction((value as { readonly connect?: unknown }).connect),
    'must be a driver adapter such as new PrismaPg({ connectionString }).',
  ),
  name: must(
    isProcessName,
    `must be a text of 1 to ${MOST_BYTES} bytes of visible characters, with single spaces between them at most.`,
  ),
  keyPrefix: text,
  fenceField: text,
  models: must(
    (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
    'must be a list of model names.',
  ),
  commandTimeout: time(1),
  fairness: choice('process', 'strict'),
  passOnAfter: time(0),
  onRedisUnavailable: choice('throw', 'postgres'),
  unsetKeyParts: choice('throw', 'allow'),
  defaults: (_, value) => resolveLockOptions(value, CALL_DEFAULTS),
  onEvent: must(isFunction, 'must be a function.'),
};

const LOCK_OPTION_NAMES = Object.keys(OF_EACH_CALL);
const CLIENT_OPTION_NAMES = ['redis', ...Object.keys(OF_THE_CLIENT)];
const TRANSACTION_OPTION_NAMES = LOCK_OPTION_NAMES.filter((name) => !['leaseTime', 'renew', 'reentry'].includes(name));
const ONCE_OPTION_NAMES = [
  'atLeast',
  'offset',
  ...LOCK_OPTION_NAMES.filter((name) => !['waitTime', 'reentry'].includes(name)),
];

/** What somebody gives to a call, or to `defaults`, that holds for the client. */
const BELONGS_TO_THE_CLIENT: Elsewhere = {
  names: CLIENT_OPTION_NAMES,
  belongs: (name) => `is an option of the client, and not of a call: write \`fencedLock({ ${name}: … })\`.`,
};

/** What somebody gives to the client that holds for a call. */
export const BELONGS_TO_A_CALL: Elsewhere = {
  names: LOCK_OPTION_NAMES,
  belongs: (name) =>
    `is an option of a call: give it to the call, or write \`defaults: { ${name}: … }\` here, which holds for all calls.`,
};

/** The options of the extension, checked, with the defaults of those that are not given. @throws InvalidOptionError */
export function resolveOptions(options: FencedLockOptions): ResolvedOptions {
  const { $extends, evalsha } = (options ?? {}) as { readonly $extends?: unknown; readonly evalsha?: unknown };
  ensure(!isFunction($extends), 'options', 'were not given: write `.$extends(fencedLock({ redis }))`.');
  ensure(!isFunction(evalsha), 'options', 'is a Redis client: write `fencedLock({ redis })`.');
  const isThere = options !== undefined && typeof options !== 'string';
  ensure(isThere, 'options', 'must have a client of Redis: `fencedLock({ redis: new Redis(url) })`.');
  checkNames('options', options, CLIENT_OPTION_NAMES, BELONGS_TO_A_CALL);
  const { redis, ...others } = options;
  const memory = memoryOf(redis);
  const clients = memory ? [] : nodes(redis as RedisLike | readonly RedisLike[]);
  const defaults = { ...DEFAULTS, name: defaultName(), defaults: CALL_DEFAULTS };
  const resolved = {
    ...resolve(OF_THE_CLIENT, others, defaults),
    redis: clients,
    memory,
  } as unknown as ResolvedOptions;
  for (const client of clients) checkKeyPrefix(client, resolved.keyPrefix);
  const mayPoll = resolved.wake !== 'pubsub' || options.pollInterval == null;
  ensure(mayPoll, 'pollInterval', "is of no use without `wake: 'poll'` or `wake: 'spin'`.");
  return memory ? { ...resolved, wake: 'pubsub' } : resolved;
}

/** The options of a call, checked. @throws InvalidOptionError */
export function resolveLockOptions(options: LockOptions, defaults: ResolvedLockOptions): ResolvedLockOptions {
  checkNames('options', options, LOCK_OPTION_NAMES, BELONGS_TO_THE_CLIENT);
  return resolve(OF_EACH_CALL, options, defaults);
}

/** Those of a handle's transaction. @throws InvalidOptionError */
export function resolveTransactionOptions(
  options: TransactionOptions,
  defaults: ResolvedLockOptions,
): ResolvedLockOptions {
  checkNames('options', options, TRANSACTION_OPTION_NAMES);
  return resolve(OF_EACH_CALL, options, defaults);
}

/** Takes what says when a job runs from the options of `$oncePer`. @throws InvalidOptionError */
export function resolveSchedule(given: unknown, options: OnceOptions): { schedule: Schedule; rest: LockOptions } {
  const interval = time(SHORTEST_INTERVAL)('interval', given);
  checkNames('options', options, ONCE_OPTION_NAMES);
  const { atLeast = 0, offset = 0, ...rest } = options;
  const within = { atLeast: time(0, interval)('atLeast', atLeast), offset: time(0, interval - 1)('offset', offset) };
  return { schedule: { interval, ...within }, rest };
}

/** Fills in the defaults of what is not given, or is null. */
function resolve<Options extends object, Defaults>(
  checks: Checks<Options>,
  options: Options,
  defaults: Defaults,
): Defaults {
  const given = Object.entries(options).filter(([, value]) => value != null);
  if (given.length === 0) return defaults;
  const resolved = { ...defaults } as Record<string, unknown>;
  for (const [name, value] of given) resolved[name] = checks[name as keyof Options](name, value);
  return resolved as Defaults;
}

function must<Value>(holds: (value: unknown) => boolean, problem: string): Check<Value> {
  return (name, value) => {
    ensure(holds(value), name, problem);
    return value;
  };
}

function choice<const Choice extends string>(...choices: readonly Choice[]): (name: string, value: Choice) => Choice {
  return must(
    (value) => choices.includes(value as Choice),
    `must be ${choices.map((one) => `'${one}'`).join(' or ')}.`,
  );
}

function time(least: number, most = LONGEST_TIME): (name: string, value: unknown) => number {
  return (name, value) => {
    // Rounded, because Redis accepts integers only, and callers often compute the rest of a time with fractions.
    if (typeof value === 'number' && value >= least && value <= most) return Math.round(value);
    const instead = value === Number.POSITIVE_INFINITY ? ` Instead of Infinity give the largest value, ${most}.` : '';
    const range = `a number of milliseconds from ${least} to ${most}`;
    throw new InvalidOptionError(name, `must be ${range}, not ${kindOf(value)}.${instead}`);
  };
}

/** What other processes are told of this one: the name of its machine, which its administrator chose, and its id. */
function defaultName(): string {
  const host = hostname().replace(/[^A-Za-z0-9._-]/g, '?') || '?';
  return `${host.slice(0, MOST_BYTES - 20)}:${process.pid}`;
}

/** By its mark: it may have been made by another copy of this package. */
function memoryOf(redis: unknown): MemoryStore | undefined {
  return (redis as Partial<MemoryStore> | null | undefined)?.kind === 'memory' ? (redis as MemoryStore) : undefined;
}

function nodes(redis: RedisLike | readonly RedisLike[]): readonly RedisLike[] {
  const clients: readonly RedisLike[] = Array.isArray(redis) ? [...redis] : [redis as RedisLike];
  ensure(clients.length > 0, 'redis', 'must name at least one client.');
  for (const client of clients) checkRedis(client);
  // A server that is listed twice would have two votes.
  const servers = clients.map((client) => addressOf(client) ?? client);
  const twice = servers.find((server, index) => servers.indexOf(server) < index);
  const what = typeof twice === 'string' ? `the server ${twice}` : 'a client';
  ensure(twice === undefined, 'redis', `names ${what} twice: each client must be of a server of its own.`);
  return clients;
}

/** What of a client's own options is looked at. */
interface ClientLike {
  readonly isCluster?: boolean;
  readonly mode?: string;
  readonly options?: { readonly [name in 'keyPrefix' | 'host' | 'port' | 'path' | 'sentinels']?: unknown };
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
  ensure(!memoryOf(redis), 'redis', 'must be a memory store alone, or a list of clients.');
  const client = redis as (Partial<RedisLike> & ClientLike & { readonly evalSha?: unknown }) | null | undefined;
  const ofNodeRedis = typeof client?.evalSha === 'function' ? ', and is one of node-redis' : '';
  const isClient = typeof client?.evalsha === 'function' && typeof client.duplicate === 'function';
  const must = `must be an ioredis client, such as new Redis(url), a list of them, or memoryStore()${ofNodeRedis}.`;
  ensure(isClient, 'redis', must);
  const mode = client?.mode ?? 'normal';
  const own = `must be a client for commands, and this one is in ${mode} mode: give it one of its own.`;
  ensure(mode === 'normal', 'redis', own);
}

/** An empty hash tag before this package's tag would make the Cluster hash the whole name. */
function checkKeyPrefix({ isCluster, options }: RedisLike & ClientLike, keyPrefix: string): void {
  if (isCluster !== true || !`${options?.keyPrefix ?? ''}${keyPrefix}`.includes('{}')) return;
  throw new InvalidOptionError('keyPrefix', 'must not have {} in it on a Cluster, nor the one of the client.');
}
