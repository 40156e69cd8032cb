import type { LockVia } from '../../base/messages.js';
import type { Lease } from '../lease.js';
import type { LeaseRequest } from './request.js';

/** A caller's time with the key. */
export interface Turn {
  readonly lease: Lease;
  /** How the caller came by the lease. */
  readonly via: LockVia;
  /**
   * Ends this turn and begins that of the next caller of this process, if there is one that the lease may pass to and
   * `take` wants to: it gives what the next one begins with.
   */
  pass<T>(take: (next: LeaseRequest, lease: Lease) => T | undefined): T | undefined;
  /** Its COMMIT is under way: tells the process that is next, if there is one that has the key then. */
  hint(): void;
  /** Whether nobody else is at work under this lease: the turn before may still wait for its COMMIT. */
  alone(): boolean;
  /** Asks the store now whether the lease is gone, and resolves to that; it is lost then. */
  look(): Promise<boolean>;
  /** Lets the next caller go on, and gives the lease back if there is none. Idempotent; never throws. */
  end(): void;
}
