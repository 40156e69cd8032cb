import type { Contestant } from '../contestants/contestant.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../servers.js';

export interface Scenario {
  readonly name: string;
  /** What it measures, in a sentence. */
  readonly about: string;
  run(stage: Stage, run: Run): Promise<Table[]>;
}

/** How this run is to be. */
export interface Run {
  readonly contestants: readonly Contestant[];
  /** The same; in a quick run a few of them, for what takes its time with each. */
  readonly few: readonly Contestant[];
  readonly seed: number;
  /** Sales of each contestant before it is measured. */
  readonly warmUp: number;
  /** The first; the second in a quick run. */
  size<T>(full: T, quick: T): T;
  /** Shown while it runs. */
  step(what: string): void;
}
