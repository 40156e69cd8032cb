import type { LockVia } from '../../base/messages.js';
import type { Lease } from '../lease.js';
import type { LeaseRequest } from './request.js';

/** The time for which a caller has the key. */
export interface Turn {
  readonly lease: Lease;
  /** How the caller came by the lease. */
  readonly via: LockVia;
  /**
   * Passes the key to the next caller of this process, if the lease suits it and `take` accepts. `take` returns what
   * the next turn begins with.
   */
  pass<T>(take: (next: LeaseRequest, lease: Lease) => T | undefined): T | undefined;
  /** Called when COMMIT has been sent: tells the next process that the key is about to be released. */
  hint(): void;
  /** Whether no other turn uses this lease. The previous turn may still wait for its COMMIT. */
  alone(): boolean;
  /** Asks the store now, and marks a missing lease as lost. Resolves to whether it is gone. */
  look(): Promise<boolean>;
  /** Ends the turn: the lease passes to the next caller, or is released. Idempotent; never throws. */
  end(): void;
}
