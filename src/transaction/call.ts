import type { Deadline } from '../base/clock.js';
import type { LockLostError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import type { LazyAbort } from '../base/lazy-abort.js';
import type { BeginOptions, Connection, Database, Query } from '../database/database.js';
import type { Fencing } from '../fencing/fencing.js';
import type { Admission } from './admission.js';
import type { AskedFor, Entry } from './entry.js';
import type { Outage } from './outage.js';

/** The right to some keys, as far as the fence needs to know it. */
interface HeldLeases {
  /** Sorted by their bytes, without duplicates. */
  readonly keys: readonly string[];
  /** The first of them: what messages name. */
  readonly key: string;
  /** One for each key. */
  readonly holders: readonly string[];
  readonly leaseTime: number;
  /** Whether others may have some of them too. */
  readonly shared: boolean;
  /** For how long nobody else can have had any of them; milliseconds. */
  readonly age: number;
  /** Why it is lost, or `undefined` while it is held. */
  readonly loss: LockLostError | undefined;
  /** Asks now whether it is gone; it is lost then. */
  look(): Promise<unknown>;
}

/** What a handle's transactions are admitted by. */
export interface Registered {
  /** Those that it was registered with, one for each key; without, it is being registered. */
  readonly tokens?: readonly bigint[];
  /** The holders in whose name the tokens stand from now on. */
  readonly successors?: readonly string[];
  /** Whether a crash must not lose the commit. */
  readonly durable?: boolean;
}

interface Limits extends BeginOptions {
  /** Of the work, from its admission to COMMIT; milliseconds. */
  readonly timeout: number;
  /** How often the work may run again. */
  readonly retries: number;
  /** What is left of the wait time is left for the admission. */
  readonly wait: { readonly deadline: Deadline; readonly waitTime: number };
}

/** The turn that begins with the COMMIT of this one, on its connection. */
export interface Successor {
  readonly asked: AskedFor;
  /** Called once, with the connection that its beginning was sent on. */
  begin(connection: Connection): void;
}

/**
 * What became of one run of the work. `unknown`: nobody can say any more whether it has committed, or its own SQL has
 * committed a part of it.
 */
export type Outcome =
  | { readonly type: 'committed' }
  | { readonly type: 'rolled-back' | 'unknown'; readonly error: unknown };

/** Everything that one call's transactions are made of. */
export interface Call<Tx, R> {
  readonly database: Database<Tx>;
  /** A transaction for the first attempt that was begun ahead. */
  readonly entry: Entry<Tx> | undefined;
  readonly fencing: Fencing;
  readonly outage: Outage;
  readonly leases: HeldLeases;
  /** The waiting room of the leases; `undefined` where whoever is in the way is to be ended. */
  readonly room: number | undefined;
  readonly limits: Limits;
  readonly abort: LazyAbort;
  /** `ask` sends a statement of ours, between those of the work. */
  readonly work: (tx: Tx, admission: Admission, ask: Query) => Promise<R>;
  readonly registered?: Registered | undefined;
  /** Called when COMMIT is about to be sent: whose turn it is next. */
  readonly successor?: (() => Successor | undefined) | undefined;
  /** Called when COMMIT has been sent, and nobody's turn begins with it. */
  readonly committing?: (() => void) | undefined;
  /** Called once for each run of the work, as soon as its outcome is known, or it is known that nobody will know it. */
  readonly settled?: ((outcome: Outcome) => void) | undefined;
  /** Has `beat` called now and then while the lease is held. */
  onBeat(beat: () => void): void;
  readonly emit: Emit;
}
