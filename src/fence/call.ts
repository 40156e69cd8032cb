import type { Deadline } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import type { Strike } from '../base/strike.js';
import type { Database, Opening, TransactionOptions } from './database.js';
import type { Fencing } from './fencing.js';

/** The right to a key, as far as the fence needs to know it. */
interface Grant {
  readonly key: string;
  readonly holder: string;
  readonly leaseTime: number;
  /** For how long it has been held; milliseconds. */
  readonly age: number;
  /** Why it is lost, or `undefined` while it is held. */
  readonly loss: Error | undefined;
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
  readonly work: (tx: Tx, token: bigint) => Promise<R>;
  /** Has `beat` called now and then while the lease is held. */
  onBeat(beat: () => void): void;
  readonly emit: Emit;
}
