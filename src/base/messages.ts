import type { FencedLockEvent } from './events.js';

/**
 * What became of a transaction. `not-admitted`: its function has not run. `unknown`: COMMIT was not answered, and nobody
 * can find out what became of it.
 */
export type LockOutcome = 'committed' | 'rolled-back' | 'unknown' | 'not-admitted';

/**
 * How a call came by the lease of a key. `free`: nobody had it. `redis`: another process gave it back or left it to expire
 * (with `fairness: 'strict'` also another caller of this one). `lease`: the call before it in this process passed the
 * lease on. `commit`: the same, and its transaction began with the COMMIT of that one. `resumed`: by `$resumeLock`.
 */
export type LockVia = 'free' | 'redis' | 'lease' | 'commit' | 'resumed';

/** What the messages of all tracing channels have. */
export interface TracedMessage {
  /** Why it failed; set before `error` is published. */
  error?: unknown;
  /**
   * A subscriber of `start` may set this to run what is traced in a context of its own. It has to call `action` at once,
   * and to call what another subscriber has set before inside of it.
   */
  around?: ((action: () => void) => void) | undefined;
}

/** `fenced-lock:lock`: one call, from its beginning until its promise settles. */
export interface LockMessage extends TracedMessage {
  readonly operation:
    | '$withLock'
    | '$tryWithLock'
    | '$oncePer'
    | '$lock'
    | '$withPermit'
    | '$tryWithPermit'
    | '$permit'
    | '$resumeLock'
    | 'handle.$transaction';
  /**
   * Sorted by their bytes, without duplicates. Of a permit: `imports [permit of 3]` while it is waited for, then the one that
   * was had, such as `imports [permit 2]`.
   */
  keys: readonly string[];
  /** The same number for all clients whose locks have the same names in Redis. */
  readonly roomId: number;
  /** The option `name` of the client, by default `hostname:pid`. */
  readonly process: string;
  /** Milliseconds, as all times here. */
  readonly waitTime: number;
  readonly leaseTime: number;
  readonly timeout: number;
  /** The token of its last transaction, from the admission on. */
  token?: bigint;
  /** Set before `asyncEnd`. Of `$lock` and `$resumeLock`: whether the token was registered. */
  outcome?: LockOutcome;
}

/** What the messages of a part of a call have. */
interface PartMessage extends TracedMessage {
  /** The message of the whole call, the very object. */
  readonly call: LockMessage;
}

/** `fenced-lock:wait`: a call waits for its leases, in its process and in Redis. */
export interface WaitMessage extends PartMessage {
  /** One for each key; set before `asyncEnd` where it got them. */
  via?: readonly LockVia[];
}

/** `fenced-lock:hold`: a call, or a handle until its release, has its leases. */
export interface HoldMessage extends PartMessage {
  /** The random ids by which Redis knows the leases, one for each key. */
  readonly holders: readonly string[];
  /** One for each key. */
  readonly via: readonly LockVia[];
}

/** `fenced-lock:transaction`: one attempt at a transaction, until its outcome is known. A call with `retries` may have several. */
export interface TransactionMessage extends PartMessage {
  /** When it began, by the clock of this machine. */
  readonly beganAt: Date;
  /** Set at the admission. `attempts` of the key's row in Postgres has this id once it has committed. */
  attempt?: string;
  /** Set at the admission: when that was, by the clock of this machine. */
  admittedAt?: Date;
  /** Set at the admission, one for each key. */
  tokens?: readonly bigint[];
  /** Set at the admission: the number of this turn in the row of the last key. */
  turn?: bigint;
  /** Set at the admission: the backend and the transaction's id in Postgres. */
  pid?: number;
  xid?: string;
  /** Milliseconds from the admission to the outcome; set before `asyncEnd` where it was admitted. */
  duration?: number;
  /** Set before `asyncEnd`. */
  outcome?: LockOutcome;
}

/** What the messages of a part of a transaction have. */
interface TransactionPartMessage extends PartMessage {
  /** The message of its transaction, the very object. */
  readonly transaction: TransactionMessage;
}

/** `fenced-lock:admission`: from the wish for a connection to Postgres's yes. */
export interface AdmissionMessage extends TransactionPartMessage {}

/** `fenced-lock:work`: the caller's function. */
export interface WorkMessage extends TransactionPartMessage {}

/** `fenced-lock:commit`: from COMMIT to its outcome. */
export interface CommitMessage extends TransactionPartMessage {
  /** Whether the next turn of this process began in the same flight; set before `end`. */
  chained?: boolean;
  /** Set before `asyncEnd`. */
  outcome?: LockOutcome;
}

/** The tracing channels: each has `start`, `end`, `asyncStart`, `asyncEnd` and `error`. */
export interface LockTracingChannels {
  readonly 'fenced-lock:lock': LockMessage;
  readonly 'fenced-lock:wait': WaitMessage;
  readonly 'fenced-lock:hold': HoldMessage;
  readonly 'fenced-lock:transaction': TransactionMessage;
  readonly 'fenced-lock:admission': AdmissionMessage;
  readonly 'fenced-lock:work': WorkMessage;
  readonly 'fenced-lock:commit': CommitMessage;
}

/** A channel for each event of `onEvent`, such as `fenced-lock:lease-lost`. */
export type LockEventChannels = {
  readonly [Type in FencedLockEvent['type'] as `fenced-lock:${Type}`]: Extract<
    FencedLockEvent,
    { readonly type: Type }
  >;
};
