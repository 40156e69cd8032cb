import type { HandlePart, Outcome } from '../history.js';
import type { Random } from '../random.js';
import type { Work } from '../turn.js';

/** A way to have a lock and a transaction around some work. To add one: a line in index.ts. */
export interface Way {
  /** How many keys it can take at once. */
  readonly mostKeys: number;
  /** Does one operation, or several under one handle. */
  run(errand: Errand): Promise<unknown>;
}

/** What a caller has set out for. */
export interface Errand {
  readonly keys: readonly string[];
  readonly leaseTime: number;
  readonly random: Random;
  /**
   * One operation: `attempt` resolves if its work was committed, and a rejection says by its `code` why it was not.
   * `operate` notes that, resolves to it and never rejects. `part`: the handle whose transaction it is.
   */
  operate(attempt: (work: Work) => Promise<unknown>, part?: HandlePart): Promise<Outcome>;
}

/** Not now: nothing was done. */
export class NotAcquired extends Error {
  readonly code = 'NOT_ACQUIRED';
}

/** Times so short that a fault of a second is past every one of them. */
export const TIMES = { waitTime: 3_000, timeout: 1_500, commandTimeout: 300, maxWait: 1_500 } as const;
