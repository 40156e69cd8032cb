import type { WorkerMessage } from '../../test/support/worker.js';
import type { Site } from './strategies/strategy.js';

export type StrategyName = 'no lock' | 'plain Redis lock' | '$withLock' | '$withLock, Redis killed';

/** To a worker: open a client, but sell nothing yet. It answers `ready`. */
export interface Open extends WorkerMessage {
  readonly type: 'open';
  readonly strategy: StrategyName;
  readonly site: Site;
  readonly stockId: number;
  readonly buyers: readonly string[];
  /** Number of the sale that waits in its middle. */
  readonly waitsInSale: number;
}

/** To a worker: sell; the sale that waits may go on. */
export interface Command extends WorkerMessage {
  readonly type: 'sell' | 'go on';
}

/** From a worker. One type for all, so that they are read in the order in which they were sent. */
export interface Report extends WorkerMessage {
  readonly type: 'report';
  readonly event: 'ready' | 'sold' | 'sold out' | 'in the middle' | 'refused' | 'all served' | 'failed';
  /** The error's name of what was refused, or all that is known of what failed. */
  readonly detail?: string;
}
