import type { Lease } from './lease.js';

/** A caller's time with the key. */
export interface Turn {
  readonly lease: Lease;
  /** The outcome is about to be known: who comes next may begin, and will wait in Postgres for it. */
  early(): void;
  /** Resolves when the turn before has been left, whose caller asked before and is to hear before; undefined if it has. */
  inOrder(): Promise<void> | undefined;
  /** Whether nobody else is at work on the key as rightfully: under this lease, or without having asked for one. */
  alone(): boolean;
  /** Lets the next caller go on, and gives the lease back if there is none. Idempotent; never throws. */
  leave(): void;
}
