import type { Worker } from '../../test/support/worker.js';
import type { StrategyName } from './messages.js';
import type { Tally } from './tally.js';

export interface Shop {
  readonly name: string;
  readonly worker: Worker;
  sold: number;
  soldOut: number;
  refused: number;
  frozen: boolean;
}

/** What is known of a run while it goes on. */
export interface RunView {
  readonly strategy: StrategyName;
  readonly units: number;
  readonly shops: readonly Shop[];
}

export interface Audience {
  begins(view: RunView): void;
  note(line: string): void;
  ends(tally: Tally): void;
}
