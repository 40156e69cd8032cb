import type { CallTrace } from '../base/call-trace.js';
import type { Deadline } from '../base/clock.js';
import type { ClosedError, LockLostError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import type { ClientTransactionOptions, Connection, Database, Query } from '../database/database.js';
import type { Fencing } from '../fencing/fencing.js';
import type { Admission, AdmissionRequest, Registered } from './admission.js';
import type { Opening } from './opening.js';

/** The leases of one or more keys, as far as the transaction needs them. */
export interface HeldLeases {
  /** Sorted by their UTF-8 bytes, without duplicates. */
  readonly keys: readonly string[];
  /** The first key. Messages name it. */
  readonly key: string;
  /** One holder id for each key. */
  readonly holders: readonly string[];
  readonly leaseTime: number;
  /** Whether another caller may hold some of these keys, too, because Redis is down. */
  readonly shared: boolean;
  /** For how long no other caller can have held any of the keys; milliseconds. */
  readonly age: number;
  /**
   * Why a lease was lost; `undefined` while all are held. By the clock: a lease whose time is over is lost when this is read, and
   * `lost` is called. Timers see to that, too, but late after a pause of the process.
   */
  readonly loss: LockLostError | undefined;
  /** Keeps their holder ids from the next callers of this process. */
  show(): void;
  /** Calls `lost` when a lease is lost, and `beat` at each renewal, until `detach`. */
  attach(user: LeaseUser): void;
  detach(user: LeaseUser): void;
}

interface LeaseUser {
  lost(loss: LockLostError): void;
  beat(): void;
}

interface TransactionLimits extends Pick<ClientTransactionOptions, 'maxWait' | 'isolationLevel'> {
  /** The wait time as the caller gave it, for messages; milliseconds. */
  readonly waitTime: number;
  /** Time for the work, from its admission to COMMIT; milliseconds. */
  readonly timeout: number;
  /** How often the work may run again. */
  readonly retries: number;
  /** Aborts the transaction. */
  readonly signal: AbortSignal | undefined;
}

/** The next caller of this process, whose transaction begins in one flight with the COMMIT of this one. */
export interface NextTurn {
  readonly request: AdmissionRequest;
  /** Called once, with the connection on which its BEGIN and admission were sent. */
  onSent(connection: Connection): void;
}

/**
 * What became of one run of the work. `unknown`: nobody can say any more whether it has committed, or its own SQL has
 * committed a part of it.
 */
export type Outcome =
  | { readonly type: 'committed' }
  | { readonly type: 'rolled-back' | 'unknown'; readonly error: unknown };

/** How a call whose leases end with its transaction passes them on. */
interface Handover {
  /** Called when the work of this attempt has ended and may commit: tells the next process. */
  hint(): void;
  /** Called when the transaction has committed. Idempotent; never throws. */
  end(): void;
}

/** What the transactions of one client share. */
export interface TransactionParts {
  readonly fencing: Fencing;
  readonly emit: Emit;
  /** The id of the waiting room in Postgres: a signed 32-bit number. */
  readonly roomId: number;
  /** Where the leases are from. Closing it turns a transaction away that is not admitted yet. */
  readonly room: { untilAdmitted(key: string, turnAway: (error: ClosedError) => void): () => void };
}

/** What the parts of a transaction need of its call, whatever its function works with and returns. */
export interface CallContext {
  readonly parts: TransactionParts;
  readonly database: Database<unknown>;
  readonly leases: HeldLeases;
  readonly options: TransactionLimits;
  /** When the wait time is over. The first admission must be had before. */
  readonly deadline: Deadline;
  readonly abort: LazyAbort;
  readonly registered?: Registered | undefined;
  /**
   * Where a key is taken from its holder: a moment before that one was found, by `SERVER_TIME`, or `undefined` if Postgres
   * did not tell. Blocking transactions that began before it are ended, and the older ones whatever their waiting room.
   */
  readonly takes?: { readonly foundAt: number | undefined };
}

/** Everything that the transactions of one call need. */
export interface Call<Tx, R> extends CallContext {
  readonly database: Database<Tx>;
  /** The transaction of the first attempt, if it was opened ahead. */
  readonly opening?: Opening<Tx> | undefined;
  /** `ask` sends a statement of this package between the statements of the work. */
  readonly work: (tx: Tx, admission: Admission, ask: Query) => Promise<R>;
  /** `undefined` for a call that keeps its leases, as one of a handle does. */
  readonly handover?: Handover | undefined;
  /** Called before COMMIT is sent. Returns the next caller, if its transaction can begin with this COMMIT. */
  readonly nextTurn?: (() => NextTurn | undefined) | undefined;
  /** Called once for each run of the work that has not committed, as soon as that is known. */
  readonly notCommitted?: ((outcome: Outcome) => void) | undefined;
  /** Whether a transaction that was opened ahead and given up is being rolled back: it may still have the key's row. */
  readonly rollsBack?: (() => boolean) | undefined;
  /** Whether to go on while the client is being closed. */
  readonly whileClosing?: boolean;
  /** Where somebody listens. */
  readonly trace?: CallTrace | undefined;
}

/** What earlier attempts of the same call found. */
export interface EarlierAttempts {
  /**
   * An earlier admission waited in vain for the key's row, although this caller holds the lease.
   */
  readonly blocked?: boolean;
  /** The row whose fence refused an earlier run, if known. */
  readonly staleRow?: ReturnType<Fencing['rowOf']>;
  /** Why the last run of the work was rolled back, and until when the admission of the next one may wait. */
  readonly conflict?: { readonly error: unknown; readonly deadline: Deadline } | undefined;
}
