import type { Site } from '../messages.js';
import type { Random } from '../random.js';
import type { Work } from '../turn.js';

/** A way to have a lock and a transaction around some work. To add one: a file here, a line in index.ts. */
export interface Way {
  /** How many keys it can take at once. */
  readonly mostKeys: number;
  /**
   * Resolves if the work was committed. A rejection says by its `code` why it was not.
   * The caller's times are random around `leaseTime`.
   */
  run(keys: readonly string[], leaseTime: number, work: Work): Promise<void>;
}

/** What all ways of one worker share. */
export interface Means {
  readonly site: Site;
  readonly random: Random;
  onEvent(type: string): void;
}

/** Not now: nothing was done. */
export class NotAcquired extends Error {
  readonly code = 'NOT_ACQUIRED';
}

/** Times so short that a fault of a second is past every one of them. */
export const TIMES = { waitTime: 3_000, timeout: 1_500, commandTimeout: 300, maxWait: 1_500 } as const;
