import type { CallTrace } from '../base/call-trace.js';
import type { Deadline } from '../base/clock.js';
import type { LockLostError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import type { BeginOptions, Connection, Database, Query } from '../database/database.js';
import type { Fencing } from '../fencing/fencing.js';
import type { Admission } from './admission.js';
import type { AskedFor, Entry } from './entry.js';
import type { Outage } from './outage.js';

/** The leases of one or more keys, as far as the transaction needs them. */
interface HeldLeases {
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
  /** Why a lease was lost; `undefined` while all are held. */
  readonly loss: LockLostError | undefined;
  /** Asks the store now whether the leases still stand, and marks a missing one as lost. */
  look(): Promise<unknown>;
}

/** What the admissions of a handle's transactions are checked against. */
export interface Registered {
  /** The handle's tokens, one for each key. Without them, the handle is being registered and new tokens are drawn. */
  readonly tokens?: readonly bigint[];
  /** The holder ids that replace the present ones in the keys' rows. */
  readonly successors?: readonly string[];
  /** Whether the commit must survive a crash of Postgres. */
  readonly durable?: boolean;
}

interface Limits extends BeginOptions {
  /** Time for the work, from its admission to COMMIT; milliseconds. */
  readonly timeout: number;
  /** How often the work may run again. */
  readonly retries: number;
  /** The admission must be had within what is left of the wait time. */
  readonly wait: { readonly deadline: Deadline; readonly waitTime: number };
}

/** The next caller of this process, whose transaction begins in one flight with the COMMIT of this one. */
export interface Successor {
  readonly asked: AskedFor;
  /** Called once, with the connection on which BEGIN and the admission of the next caller were sent. */
  begin(connection: Connection): void;
}

/**
 * What became of one run of the work. `unknown`: nobody can say any more whether it has committed, or its own SQL has
 * committed a part of it.
 */
export type Outcome =
  | { readonly type: 'committed' }
  | { readonly type: 'rolled-back' | 'unknown'; readonly error: unknown };

/** Everything that the transactions of one call need. */
export interface Call<Tx, R> {
  readonly database: Database<Tx>;
  /** A transaction that was begun ahead, for the first attempt. */
  readonly entry: Entry<Tx> | undefined;
  readonly fencing: Fencing;
  readonly outage: Outage;
  readonly leases: HeldLeases;
  /** The id of the leases' waiting room; `undefined` if a blocking transaction is ended whatever its waiting room. */
  readonly room: number | undefined;
  readonly limits: Limits;
  readonly abort: LazyAbort;
  /** `ask` sends a statement of this package between the statements of the work. */
  readonly work: (tx: Tx, admission: Admission, ask: Query) => Promise<R>;
  readonly registered?: Registered | undefined;
  /** Called before COMMIT is sent. Returns the next caller, if its transaction can begin with this COMMIT. */
  readonly successor?: (() => Successor | undefined) | undefined;
  /** Called after COMMIT has been sent, if no successor begins with it. */
  readonly committing?: (() => void) | undefined;
  /** Called once for each run of the work, as soon as its outcome is known, or it is known that nobody will know it. */
  readonly settled?: ((outcome: Outcome) => void) | undefined;
  /** Registers `beat`, which is called at each renewal of the leases. */
  onBeat(beat: () => void): void;
  readonly emit: Emit;
  /** Where somebody listens. */
  readonly trace?: CallTrace | undefined;
}
