export type Cell = string | number;

/** One table of a report, and what to draw of it. A number that could not be had is NaN. */
export interface Table {
  readonly title: string;
  /** What it takes to read it right. */
  readonly note?: string;
  readonly rows: ReadonlyArray<Readonly<Record<string, Cell>>>;
  readonly chart?: Chart;
}

export interface Chart {
  /** `bar`: `label` over `value`. `line`: `value` over the numbers of `label`, a line for each `series`. */
  readonly kind: 'bar' | 'line';
  readonly label: string;
  readonly value: string;
  readonly series?: string;
  readonly logarithmic?: boolean;
}

export interface ScenarioResult {
  readonly scenario: string;
  readonly about: string;
  readonly seconds: number;
  readonly tables: readonly Table[];
  /** Why there is nothing more. */
  readonly error?: string;
}

export interface Report {
  readonly startedAt: string;
  readonly seed: number;
  readonly quick: boolean;
  readonly warmUp: number;
  readonly machine: Readonly<Record<string, string>>;
  readonly versions: Readonly<Record<string, string>>;
  readonly scenarios: readonly ScenarioResult[];
}
