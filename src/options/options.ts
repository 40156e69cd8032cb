import type { FencedLockEvent } from '../base/events.js';
import type { MemoryStore } from '../lease/stores/memory.js';

/** What `fencedLock` takes. */
export interface FencedLockOptions {
  /**
   * An ioredis client (5 or 6) of one server, of Sentinel, or of a Cluster. Commands go over it; wake-ups over one
   * duplicate of it, on a Cluster over one for each master that has a key somebody waits for. Or a list of clients of servers
   * that know nothing of each other: a key is then had by who has it on more than half of them, so that locking goes on
   * while fewer than half fail. There is no order among processes then. No update is lost with one server or with many.
   * Or `memoryStore()`, for tests and for an application of one process: what is about the server has no effect then
   * (`wake`, `pollInterval`, `commandTimeout`, `onRedisUnavailable`).
   */
  readonly redis: RedisLike | readonly RedisLike[] | MemoryStore;
  /**
   * How those who wait in other processes hear that a key is free. `pubsub`: a release tells them. `poll`: they look
   * again after a random time, for servers, proxies and users without pub/sub; nothing is published then, so all
   * clients of the same keys need the same. `spin`: after always the same time. Default: `pubsub`.
   */
  readonly wake?: 'pubsub' | 'poll' | 'spin' | undefined;
  /** With `wake: 'poll'` the longest time between two looks, with `'spin'` each, and else none; ms, 10 to 2 000. Default: 200. */
  readonly pollInterval?: number | undefined;
  /** A driver adapter for the one connection that finds out outcomes. Default: like the client's own. */
  readonly rescue?: AdapterLike | undefined;
  /** Before every name in Redis. Default: `fenced-lock:`. */
  readonly keyPrefix?: string | undefined;
  /** The field that makes a model fenced. Default: `fence`. */
  readonly fenceField?: string | undefined;
  /** The models to fence. Default: every model that has the field. */
  readonly models?: readonly string[] | undefined;
  /** How long Redis may take to answer one command before its answer counts as lost; ms. Default: 2 000. */
  readonly commandTimeout?: number | undefined;
  /**
   * `process`: across processes first come, first served, and the callers of one process share its place; the key
   * passes between them without Redis. `strict`: every caller has a place of its own. Default: `process`.
   */
  readonly fairness?: 'process' | 'strict' | undefined;
  /** How often in a row a key may pass from caller to caller in this process while another one waits. Default: 16. */
  readonly maxLocalHandovers?: number | undefined;
  /**
   * What a call does that Redis does not answer: `throw` waits and then rejects with `LockUnavailableError`;
   * `postgres` goes on without, and transactions of one key wait for each other in Postgres, each on a connection of
   * its own. No update is lost either way. Handles wait for Redis. Default: `throw`.
   */
  readonly onRedisUnavailable?: 'throw' | 'postgres' | undefined;
  /**
   * A key in which a value is missing, such as `stock:undefined`, `stock:null:1`, `stock:NaN` or `[object Object]`: `throw`
   * refuses it, `allow` takes it as any other. Default: `throw`.
   */
  readonly unsetKeyParts?: 'throw' | 'allow' | undefined;
  /** Defaults for the options of each call. */
  readonly defaults?: LockOptions | undefined;
  /** Hears of what happens beside the caller's way. */
  readonly onEvent?: ((event: FencedLockEvent) => void) | undefined;
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
  readonly waitTime?: number | undefined;
  /**
   * How long the lease stands without a renewal; ms, at least 100. It bounds what a crash of the holder costs the
   * others, so it need not be as long as the work. Default: 30 000.
   */
  readonly leaseTime?: number | undefined;
  /** Whether the lease is extended while the work runs, at a third of its time. Default: `true`. */
  readonly renew?: boolean | undefined;
  /** How long the work may take, from its admission to COMMIT; ms. Default: 30 000. */
  readonly timeout?: number | undefined;
  /** Ends the waiting or the work; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * What a call inside the function of a lock of the same keys does: `join` works in its transaction, under its token,
   * and ends with it; `throw` refuses. Default: `join`.
   */
  readonly reentry?: 'join' | 'throw' | undefined;
  /**
   * What a call inside the function of another lock, or of a plain `$transaction`, does: `throw` refuses it, because the
   * outer one holds a connection while the inner one waits; `allow` leaves it to you that the pool has room. Default: `throw`.
   */
  readonly nested?: 'throw' | 'allow' | undefined;
  /**
   * How often the whole transaction runs again, under the same lease and a fresh token, after a serialization failure
   * (40001), a deadlock (40P01) or a row that was written under another key (`StaleTokenError`, `other-key`). The
   * function may then run several times: what it does outside of `tx` has to bear that, and it gets a new `tx` and
   * `lock` each time. `timeout` is for each run. 0 to 100. Default: 0.
   */
  readonly retries?: number | undefined;
  /**
   * What becomes of an error in a hook of a call that has committed: `event` gives it to `onEvent` as `hook-failed`, and the
   * call resolves; `throw` has the call reject with `HookFailedError`, which has the result. Of a call that has not
   * committed it is always an event, and the call rejects with its own error. Default: `event`.
   */
  readonly hookErrors?: 'event' | 'throw' | undefined;
  /** Isolation level of the transaction. Default: the database's, READ COMMITTED if nobody changed it. */
  readonly isolationLevel?: 'ReadUncommitted' | 'ReadCommitted' | 'RepeatableRead' | 'Serializable' | undefined;
  /** How long to wait for a connection of the pool; ms. Default: Prisma's (2 000). */
  readonly maxWait?: number | undefined;
}

/** What one transaction of a handle takes. `waitTime`: how long to wait for another one of the same handle. */
export type TransactionOptions = Pick<
  LockOptions,
  'waitTime' | 'timeout' | 'signal' | 'nested' | 'retries' | 'hookErrors' | 'isolationLevel' | 'maxWait'
>;

/** What `$oncePer` takes. It does not wait, and joins nothing. */
export interface OnceOptions extends Omit<LockOptions, 'waitTime' | 'reentry'> {
  /**
   * The next run begins so much later than this one began at the earliest, also where the next interval has begun before;
   * ms, 0 to the interval. Default: 0.
   */
  readonly atLeast?: number | undefined;
  /**
   * How much later than the multiples of the interval since the Unix epoch (UTC) the intervals begin; ms, less than the
   * interval. Default: 0.
   */
  readonly offset?: number | undefined;
}

/** When a job runs; milliseconds. */
export interface Schedule {
  readonly interval: number;
  readonly offset: number;
  readonly atLeast: number;
}

/** A handle on its way to another process. */
export interface HandleState {
  readonly keys: readonly string[];
  /** One for each key. */
  readonly tokens: readonly string[];
  readonly holders: readonly string[];
  readonly leaseTime: number;
}

/** `LockOptions` with every default filled in. */
export interface ResolvedLockOptions {
  readonly waitTime: number;
  readonly leaseTime: number;
  readonly renew: boolean;
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
  readonly reentry: 'join' | 'throw';
  readonly nested: 'throw' | 'allow';
  readonly retries: number;
  readonly hookErrors: 'event' | 'throw';
  readonly isolationLevel: string | undefined;
  readonly maxWait: number | undefined;
}

export interface ResolvedOptions {
  /** One, or each node of a quorum; none where there is a memory store. */
  readonly redis: readonly RedisLike[];
  readonly memory: MemoryStore | undefined;
  readonly wake: 'pubsub' | 'poll' | 'spin';
  readonly pollInterval: number;
  readonly rescue: AdapterLike | undefined;
  readonly keyPrefix: string;
  readonly fenceField: string;
  readonly models: readonly string[] | undefined;
  readonly commandTimeout: number;
  readonly fairness: 'process' | 'strict';
  readonly maxLocalHandovers: number;
  readonly onRedisUnavailable: 'throw' | 'postgres';
  readonly unsetKeyParts: 'throw' | 'allow';
  readonly defaults: ResolvedLockOptions;
  readonly onEvent: ((event: FencedLockEvent) => void) | undefined;
}

export const DEFAULTS = {
  keyPrefix: 'fenced-lock:',
  fenceField: 'fence',
  commandTimeout: 2_000,
  fairness: 'process',
  maxLocalHandovers: 16,
  onRedisUnavailable: 'throw',
  unsetKeyParts: 'throw',
  wake: 'pubsub',
  pollInterval: 200,
  waitTime: 10_000,
  leaseTime: 30_000,
  renew: true,
  timeout: 30_000,
  reentry: 'join',
  nested: 'throw',
  retries: 0,
  hookErrors: 'event',
} as const satisfies Partial<Record<keyof FencedLockOptions | keyof LockOptions, unknown>>;
