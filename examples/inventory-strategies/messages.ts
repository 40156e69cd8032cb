import type { WorkerMessage } from '../../test/support/worker.js';
import type { Site } from './strategies/strategy.js';

/** To a worker: open this strategy, but sell nothing yet. It answers `ready`. */
export interface Open extends WorkerMessage {
  readonly type: 'open';
  readonly strategy: string;
  readonly site: Site;
  readonly stockId: number;
  /** Another product, of which each worker sells a few first: connections and code are warm then. */
  readonly warmUpId: number;
  readonly buyers: readonly string[];
  /** Number of the sale that waits between its read and its write; undefined: none does. */
  readonly waitsInSale: number | undefined;
}

/** To a worker: sell; the sale that waits may go on. */
export interface Command extends WorkerMessage {
  readonly type: 'sell' | 'go on';
}

/** From a worker. One type for all, so that they are read in the order in which they were sent. */
export interface Report extends WorkerMessage {
  readonly type: 'report';
  readonly event: 'ready' | 'sold' | 'sold out' | 'in the middle' | 'refused' | 'all served' | 'failed';
  readonly detail?: string;
}
