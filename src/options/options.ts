import type { FencedLockEvent } from '../base/events.js';
import type { MemoryStore } from '../stores/memory.js';

/** The options of `fencedLock`. */
export interface FencedLockOptions {
  /**
   * An ioredis client (5 or 6) of one server, a Sentinel group, or a Cluster. Commands use it. Wake-ups use one
   * duplicate of it; on a Cluster, one for each master that has a key with a waiting caller. Or a list of clients of
   * independent servers: a holder then needs more than half of them, so that locking goes on while fewer than half
   * fail, but processes are not served in order. No update is lost either way.
   * Or `memoryStore()`, for tests and for an application of one process: what is about the server has no effect then
   * (`wake`, `pollInterval`, `commandTimeout`, `onRedisUnavailable`).
   */
  readonly redis: RedisLike | readonly RedisLike[] | MemoryStore;
  /**
   * How waiting processes learn that a key is free. `pubsub`: a release publishes a message. `poll`: they look again
   * after a random time, for servers, proxies and users without pub/sub; releases publish nothing, so all clients of
   * the same keys need the same value. `spin`: like `poll`, after a fixed time. Default: `pubsub`.
   */
  readonly wake?: 'pubsub' | 'poll' | 'spin' | undefined;
  /**
   * The longest time between two looks with `wake: 'poll'`, the fixed time with `'spin'`. Not allowed otherwise.
   * Milliseconds, 10 to 2 000. Default: 200.
   */
  readonly pollInterval?: number | undefined;
  /**
   * A driver adapter for the rescue connection, on which the outcome of a lost COMMIT is found out and backends are
   * ended. Default: made by the client's own adapter factory.
   */
  readonly rescue?: AdapterLike | undefined;
  /**
   * What other processes are told of this one while it has a key: in `LockTimeoutError.holder`, `$locks` and `fenced-lock ls`.
   * 1 to 100 bytes of visible characters, and spaces between them. Default: `hostname:pid`.
   */
  readonly name?: string | undefined;
  /** The prefix of all names in Redis. Default: `fenced-lock:`. */
  readonly keyPrefix?: string | undefined;
  /** The name of the field that makes a model fenced. Default: `fence`. */
  readonly fenceField?: string | undefined;
  /** The models to fence. Default: every model that has the field. */
  readonly models?: readonly string[] | undefined;
  /** How long Redis may take to answer a command before the answer counts as lost; milliseconds. Default: 2 000. */
  readonly commandTimeout?: number | undefined;
  /**
   * `process`: processes that wait take turns in the order in which they asked; the callers of one share its place, and the
   * key passes between them without Redis. `strict`: every caller has its own place. Default: `process`.
   */
  readonly fairness?: 'process' | 'strict' | undefined;
  /**
   * For how long a key passes from caller to caller in this process while another process waits, compared at the end of
   * each turn; milliseconds. A turn that takes longer passes the key on, and with 0 every turn does. Default: 50.
   */
  readonly passOnAfter?: number | undefined;
  /**
   * What a call does if Redis does not answer. `throw`: waits, then rejects with `LockUnavailableError`. `postgres`:
   * goes on without Redis; transactions of one key then wait for each other in Postgres, each with a connection. No
   * update is lost either way. Handles always need Redis. Default: `throw`.
   */
  readonly onRedisUnavailable?: 'throw' | 'postgres' | undefined;
  /**
   * What to do with a key in which a value is missing, such as `stock:undefined`, `stock:null:1`, `stock:NaN` or
   * `[object Object]`, or in which one seems to be empty: `stock:`, or white space at the beginning or the end. Or one with
   * `${…}` in it, that was not filled in. `throw` refuses it, `allow` accepts it. Default: `throw`.
   */
  readonly unsetKeyParts?: 'throw' | 'allow' | undefined;
  /** Defaults for the options of each call. */
  readonly defaults?: LockOptions | undefined;
  /** Called with each event. An error that it throws becomes a process warning. */
  readonly onEvent?: ((event: FencedLockEvent) => void) | undefined;
}

/** An ioredis client. Only a part of the type, because the full types differ between versions of ioredis. */
export interface RedisLike {
  readonly status: string;
  duplicate(...args: never[]): unknown;
  evalsha(...args: never[]): unknown;
}

/** A Prisma driver adapter for PostgreSQL, such as `new PrismaPg({ connectionString })`. */
export interface AdapterLike {
  readonly provider: string;
  readonly adapterName: string;
  connect(): Promise<unknown>;
}

/** The options of a call. */
export interface LockOptions {
  /** How long to wait for the lock; milliseconds, 0 to 2^31 - 1. Default: 10 000. */
  readonly waitTime?: number | undefined;
  /**
   * How long the lease stands without a renewal; ms, at least 100. It bounds what a crash of the holder costs the
   * others, so it need not be as long as the work. Default: 5 000.
   */
  readonly leaseTime?: number | undefined;
  /** Whether the lease is extended while the work runs, at a third of its time. Default: `true`. */
  readonly renew?: boolean | undefined;
  /** How long the work may take, from its admission to COMMIT; milliseconds. Default: 30 000. */
  readonly timeout?: number | undefined;
  /** Aborts the waiting or the work; of `$lock` the waiting alone. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * What a call inside the function of a lock of the same keys does. `join` works in the outer transaction, under its
   * token, and commits with it. `throw` refuses. Default: `join`.
   */
  readonly reentry?: 'join' | 'throw' | undefined;
  /**
   * What a call inside the function of another lock, or of a plain `$transaction`, does. `throw` refuses it, because
   * the outer call holds a connection while the inner one waits. `allow`, given to the inner call,
   * permits it; make the pool large enough. Default: `throw`.
   */
  readonly nested?: 'throw' | 'allow' | undefined;
  /**
   * How often the whole transaction runs again, under the same lease and a new token, after a serialization failure
   * (40001), a deadlock (40P01) or a row that was written under another key (`StaleTokenError`, `other-key`). Each run
   * gets a new `tx` and `lock`, and `timeout` applies to each run. Side effects outside `tx` are repeated. A handle keeps
   * its token, so its transactions run again after 40001 and 40P01 alone. 0 to 100. Default: 0.
   */
  readonly retries?: number | undefined;
  /**
   * What becomes of an error in a hook of a call that has committed: `event` gives it to `onEvent` as `hook-failed`, and the
   * call resolves; `throw` has the call reject with `HookFailedError`, which has the result. Of a call that has not
   * committed it is always an event, and the call rejects with its own error. Default: `event`.
   */
  readonly hookErrors?: 'event' | 'throw' | undefined;
  /**
   * The isolation level of the transaction. Default: that of `transactionOptions` of the client, or the database's, READ COMMITTED
   * unless it was changed.
   */
  readonly isolationLevel?: 'ReadUncommitted' | 'ReadCommitted' | 'RepeatableRead' | 'Serializable' | undefined;
  /**
   * How long to wait for a connection of the pool; milliseconds. Default: that of `transactionOptions` of Prisma's client, or
   * 2 000.
   */
  readonly maxWait?: number | undefined;
}

/** The options of a transaction of a handle. `waitTime` is for other transactions of the same handle. */
export type TransactionOptions = Pick<
  LockOptions,
  'waitTime' | 'timeout' | 'signal' | 'nested' | 'retries' | 'hookErrors' | 'isolationLevel' | 'maxWait'
>;

/** How many may be at work under a key. */
export interface PermitOptions {
  /**
   * 1 to 1000. Every call works beside fewer than this. So a call that gives a lower number than others do waits until
   * enough of them have ended, and callers that came after it wait behind it.
   */
  readonly permits: number;
}

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

/** What an operator has seen of a key, as `$locks.inspect` and `$locks.list` show it. */
export interface SeenState {
  /** The holder id; `undefined` if nobody had the key. */
  readonly holder: string | undefined;
}

/** The serialized state of a handle, for another process. */
export interface HandleState {
  readonly keys: readonly string[];
  /** One token for each key. */
  readonly tokens: readonly string[];
  readonly holders: readonly string[];
  readonly leaseTime: number;
}

/** All options given, but for those that have no default. */
type Resolved<Options, Without extends keyof Options> = {
  readonly [Name in Exclude<keyof Options, Without>]-?: Exclude<Options[Name], undefined>;
} & { readonly [Name in Without]: Options[Name] };

/** `LockOptions` with all defaults filled in. */
export type ResolvedLockOptions = Resolved<Required<LockOptions>, 'signal' | 'isolationLevel' | 'maxWait'>;

export interface ResolvedOptions
  extends Omit<Resolved<Required<FencedLockOptions>, 'rescue' | 'models' | 'onEvent'>, 'redis' | 'defaults'> {
  /** One, or each node of a quorum; none where there is a memory store. */
  readonly redis: readonly RedisLike[];
  readonly memory: MemoryStore | undefined;
  readonly defaults: ResolvedLockOptions;
}

/** The options of a call where neither `defaults` nor the call gives one. */
export const CALL_DEFAULTS: ResolvedLockOptions = {
  waitTime: 10_000,
  leaseTime: 5_000,
  renew: true,
  timeout: 30_000,
  signal: undefined,
  reentry: 'join',
  nested: 'throw',
  retries: 0,
  hookErrors: 'event',
  isolationLevel: undefined,
  maxWait: undefined,
};

/** The options of the client that are not given. */
export const DEFAULTS = {
  wake: 'pubsub',
  pollInterval: 200,
  keyPrefix: 'fenced-lock:',
  fenceField: 'fence',
  commandTimeout: 2_000,
  fairness: 'process',
  passOnAfter: 50,
  onRedisUnavailable: 'throw',
  unsetKeyParts: 'throw',
} as const satisfies Partial<FencedLockOptions>;

/** The shortest lease that a renewal at a third of its time can keep over a network; milliseconds. */
export const SHORTEST_LEASE = 100;
