import { LONGEST_TIME } from './base/clock.js';
import { InvalidOptionError } from './base/errors.js';
import type { FencedLockEvent } from './base/events.js';

/** What `fencedLock` takes. */
export interface FencedLockOptions {
  /** An ioredis client (5 or 6). Commands go over it; wake-ups over one duplicate of it. */
  readonly redis: RedisLike;
  /** A driver adapter for the one connection that finds out outcomes. Default: like the client's own. */
  readonly rescue?: AdapterLike;
  /** Before every name in Redis. Default: `fenced-lock:`. */
  readonly keyPrefix?: string;
  /** The field that makes a model fenced. Default: `fence`. */
  readonly fenceField?: string;
  /** The models to fence. Default: every model that has the field. */
  readonly models?: readonly string[];
  /** How long Redis may take to answer one command before its answer counts as lost; ms. Default: 2 000. */
  readonly commandTimeout?: number;
  /** Defaults for the options of each call. */
  readonly defaults?: LockOptions;
  /** Hears of what happens beside the caller's way. */
  readonly onEvent?: (event: FencedLockEvent) => void;
}

/** An ioredis client, as far as its type matters: the packages' own types differ between their versions. */
export interface RedisLike {
  readonly status: string;
  duplicate(...args: never[]): unknown;
  evalsha(...args: never[]): unknown;
}

/** A driver adapter of Prisma for PostgreSQL, such as `new PrismaPg({ connectionString })`. */
export interface AdapterLike {
  readonly provider: string;
  readonly adapterName: string;
  connect(): Promise<unknown>;
}

/** What one call takes. */
export interface LockOptions {
  /** How long to wait for the lock; ms, 0 to 2^31 - 1. Default: 10 000. */
  readonly waitTime?: number;
  /**
   * How long the lease stands without a renewal; ms, at least 100. It bounds what a crash of the holder costs the
   * others, so it need not be as long as the work. Default: 30 000.
   */
  readonly leaseTime?: number;
  /** Whether the lease is extended while the work runs, at a third of its time. Default: `true`. */
  readonly renew?: boolean;
  /** How long the work may take, from its admission to COMMIT; ms. Default: 30 000. */
  readonly timeout?: number;
  /** Ends the waiting or the work; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * What a call inside the function of another lock does: `throw` refuses it, because the outer one holds a
   * connection while the inner one waits; `allow` leaves it to you that the pool has room. Default: `throw`.
   */
  readonly nested?: 'throw' | 'allow';
  /**
   * How often the whole transaction runs again, under the same lease and a fresh token, after a serialization failure
   * (40001), a deadlock (40P01) or a row that was written under another key (`StaleTokenError`, `other-key`). The
   * function may then run several times: what it does outside of `tx` has to bear that, and it gets a new `tx` and
   * `lock` each time. `timeout` is for each run. 0 to 100. Default: 0.
   */
  readonly retries?: number;
  /** Isolation level of the transaction. Default: the database's, READ COMMITTED if nobody changed it. */
  readonly isolationLevel?: 'ReadUncommitted' | 'ReadCommitted' | 'RepeatableRead' | 'Serializable';
  /** How long to wait for a connection of the pool; ms. Default: Prisma's (2 000). */
  readonly maxWait?: number;
}

/** `LockOptions` with every default filled in. */
export interface ResolvedLockOptions {
  readonly waitTime: number;
  readonly leaseTime: number;
  readonly renew: boolean;
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
  readonly nested: 'throw' | 'allow';
  readonly retries: number;
  readonly isolationLevel: string | undefined;
  readonly maxWait: number | undefined;
}

export interface ResolvedOptions {
  readonly redis: RedisLike;
  readonly rescue: AdapterLike | undefined;
  readonly keyPrefix: string;
  readonly fenceField: string;
  readonly models: readonly string[] | undefined;
  readonly commandTimeout: number;
  readonly defaults: ResolvedLockOptions;
  readonly onEvent: ((event: FencedLockEvent) => void) | undefined;
}

export const DEFAULTS = {
  keyPrefix: 'fenced-lock:',
  fenceField: 'fence',
  commandTimeout: 2_000,
  waitTime: 10_000,
  leaseTime: 30_000,
  renew: true,
  timeout: 30_000,
  nested: 'throw',
  retries: 0,
} as const satisfies Partial<Record<keyof FencedLockOptions | keyof LockOptions, unknown>>;

/** The shortest lease that a renewal at a third of its time can hold over a network. */
const SHORTEST_LEASE = 100;
const LONGEST_KEY = 512;
const MOST_RETRIES = 100;
const ISOLATION_LEVELS = ['ReadUncommitted', 'ReadCommitted', 'RepeatableRead', 'Serializable'];

const OPTION_NAMES: readonly (keyof FencedLockOptions)[] = [
  'redis',
  'rescue',
  'keyPrefix',
  'fenceField',
  'models',
  'commandTimeout',
  'defaults',
  'onEvent',
];
const LOCK_OPTION_NAMES: readonly (keyof LockOptions)[] = [
  'waitTime',
  'leaseTime',
  'renew',
  'timeout',
  'signal',
  'nested',
  'retries',
  'isolationLevel',
  'maxWait',
];

/** Checks the options of the extension. @throws InvalidOptionError */
export function resolveOptions(options: FencedLockOptions): ResolvedOptions {
  checkNames('options', options, OPTION_NAMES);
  const { redis, rescue, keyPrefix, fenceField, models, commandTimeout, defaults, onEvent } = options;
  checkRedis(redis);
  if (rescue !== undefined && typeof rescue?.connect !== 'function') {
    throw new InvalidOptionError('rescue', 'must be a driver adapter such as new PrismaPg({ connectionString }).');
  }
  if (models !== undefined && !(Array.isArray(models) && models.every((name) => typeof name === 'string'))) {
    throw new InvalidOptionError('models', 'must be a list of model names.');
  }
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw new InvalidOptionError('onEvent', 'must be a function.');
  }
  return {
    redis,
    rescue,
    keyPrefix: text('keyPrefix', keyPrefix ?? DEFAULTS.keyPrefix),
    fenceField: text('fenceField', fenceField ?? DEFAULTS.fenceField),
    models,
    commandTimeout: time('commandTimeout', commandTimeout ?? DEFAULTS.commandTimeout, 1),
    defaults: resolveLockOptions(defaults ?? {}, BUILT_IN),
    onEvent,
  };
}

/** Checks the options of a call. @throws InvalidOptionError */
export function resolveLockOptions(options: LockOptions, defaults: ResolvedLockOptions): ResolvedLockOptions {
  checkNames('options', options, LOCK_OPTION_NAMES);
  const waitTime = time('waitTime', options.waitTime ?? defaults.waitTime, 0);
  const leaseTime = time('leaseTime', options.leaseTime ?? defaults.leaseTime, SHORTEST_LEASE);
  const timeout = time('timeout', options.timeout ?? defaults.timeout, 1);
  const givenWait = options.maxWait ?? defaults.maxWait;
  const maxWait = givenWait === undefined ? undefined : time('maxWait', givenWait, 0);
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
  const nested = options.nested ?? defaults.nested;
  if (nested !== 'throw' && nested !== 'allow') throw new InvalidOptionError('nested', "must be 'throw' or 'allow'.");
  const retries = options.retries ?? defaults.retries;
  if (!Number.isInteger(retries) || retries < 0 || retries > MOST_RETRIES) {
    throw new InvalidOptionError('retries', `must be a whole number from 0 to ${MOST_RETRIES}.`);
  }
  return { waitTime, leaseTime, renew, timeout, signal, nested, retries, isolationLevel, maxWait };
}

const BUILT_IN: ResolvedLockOptions = {
  ...DEFAULTS,
  signal: undefined,
  isolationLevel: undefined,
  maxWait: undefined,
};

/** A key is 1 to 512 bytes of UTF-8 without NUL, which Postgres cannot store. @throws InvalidOptionError */
export function checkKey(key: unknown): string {
  if (typeof key !== 'string') throw new InvalidOptionError('key', `must be a string, not ${typeof key}.`);
  if (key === '') throw new InvalidOptionError('key', 'must not be empty: name what is locked, such as "stock:1".');
  // Before the bytes are counted: a string of megabytes is refused by its length alone.
  if (key.length > LONGEST_KEY || Buffer.byteLength(key) > LONGEST_KEY) {
    throw new InvalidOptionError('key', `must not be longer than ${LONGEST_KEY} bytes of UTF-8: use an id, or a hash.`);
  }
  if (key.includes('\0')) throw new InvalidOptionError('key', 'must not contain NUL: Postgres cannot store it.');
  if (!key.isWellFormed()) throw new InvalidOptionError('key', 'must be well-formed: it has a lone surrogate.');
  return key;
}

/** @throws InvalidOptionError */
export function checkWork(work: unknown): void {
  if (typeof work !== 'function') {
    throw new InvalidOptionError('fn', 'must be a function that is given the client of the transaction.');
  }
}

function checkRedis(redis: unknown): void {
  const client = redis as Partial<RedisLike & { mode: string; isCluster: boolean }> | null | undefined;
  if (typeof client?.evalsha !== 'function' || typeof client.duplicate !== 'function') {
    throw new InvalidOptionError('redis', 'must be an ioredis client, such as new Redis(url).');
  }
  // Its pipelines refuse keys of several slots, so with two leases held at once neither would be renewed.
  if (client.isCluster === true) {
    throw new InvalidOptionError('redis', 'must be a client of one server or of Sentinel, and this one is a Cluster.');
  }
  if (client.mode !== undefined && client.mode !== 'normal') {
    throw new InvalidOptionError(
      'redis',
      `must be a client for commands, and this one is in ${client.mode} mode: give it one of its own.`,
    );
  }
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

function time(name: string, value: unknown, least: number): number {
  // Whole, because Redis takes no fractions: what is left of a time is often computed from a clock that has them.
  if (typeof value === 'number' && value >= least && value <= LONGEST_TIME) return Math.round(value);
  throw new InvalidOptionError(name, `must be a number of milliseconds from ${least} to ${LONGEST_TIME}.`);
}
