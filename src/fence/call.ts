import type { Deadline } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import type { Strike } from '../base/strike.js';
import type { Admission } from './admission.js';
import type { Database, Opening, TransactionOptions } from './database.js';
import type { Fencing } from './fencing.js';

/** The right to some keys, as far as the fence needs to know it. */
interface Grant {
  /** Sorted by their bytes, without duplicates. */
  readonly keys: readonly string[];
  /** The first of them: what messages name. */
  readonly key: string;
  /** One for each key. */
  readonly holders: readonly string[];
  readonly leaseTime: number;
  /** For how long nobody else can have had any of them; milliseconds. */
  readonly age: number;
  /** Why it is lost, or `undefined` while it is held. */
  readonly loss: Error | undefined;
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

interface Limits extends TransactionOptions {
  /** Of the work, from its admission to COMMIT; milliseconds. */
  readonly timeout: number;
  /** How often the work may run again. */
  readonly retries: number;
  /** What is left of the wait time is left for the admission. */
  readonly wait: { readonly deadline: Deadline; readonly waitTime: number };
}

/** Everything that one call's transactions are made of. */
export interface Call<Tx, R> {
  readonly database: Database<Tx>;
  /** A transaction for the first attempt that was opened ahead. */
  readonly opening: Opening<Tx> | undefined;
  readonly fencing: Fencing;
  readonly grant: Grant;
  readonly limits: Limits;
  readonly strike: Strike;
  readonly work: (tx: Tx, admission: Admission) => Promise<R>;
  readonly registered?: Registered | undefined;
  /** Called when COMMIT is about to be sent. */
  readonly onCommit?: (admission: Admission) => void;
  /** Has `beat` called now and then while the lease is held. */
  onBeat(beat: () => void): void;
  readonly emit: Emit;
}
