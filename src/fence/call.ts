import type { Deadline } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import type { Database, TransactionOptions } from './database.js';

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
  /** What is left of the wait time is left for the admission. */
  readonly wait: { readonly deadline: Deadline; readonly waitTime: number };
}

/** Which models are fenced, and by which field. */
export interface Fencing {
  readonly field: string;
  isFenced(model: string): boolean;
}

/** Everything that one call's transactions are made of. */
export interface Call<Tx, R> {
  readonly database: Database<Tx>;
  readonly fencing: Fencing;
  readonly grant: Grant;
  readonly limits: Limits;
  /** Ends the work before its time: lease lost, caller's signal, timeout. Its signal is the caller's. */
  readonly strike: AbortController;
  readonly work: (tx: Tx, token: bigint) => R | Promise<R>;
  /** Has `beat` called now and then while the lease is held. */
  onBeat(beat: () => void): void;
  readonly emit: Emit;
}
