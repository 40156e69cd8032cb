/** What is left of one run: by the books, and by what the buyers were told. */
export interface Tally {
  readonly units: number;
  readonly buyers: number;
  /** Buyers who were told that they had bought. */
  readonly sold: number;
  readonly orders: number;
  /** What the stock says is left. */
  readonly left: number;
  /** Attempts that were refused because somebody else had the lock meanwhile. Their buyers tried again. */
  readonly refused: number;
  /** From the first attempt to the last sale. */
  readonly seconds: number;
  /** The longest time in which nobody sold anything while a process was frozen and another one had buyers; seconds. */
  readonly stoodStill: number;
}

/** Both runs of a strategy. */
export interface Outcome {
  readonly strategy: string;
  readonly stockIn: 'Postgres' | 'Redis';
  /** Nobody is frozen: what it costs. */
  readonly calm: Tally;
  /** One process is frozen between a read and a write: what it loses. */
  readonly frozen: Tally;
}

/** Units that never existed. */
export function oversold({ sold, units }: Tally): number {
  return Math.max(0, sold - units);
}

/** Sales that the stock knows nothing of: their decrement was overwritten. */
export function lost({ sold, units, left }: Tally): number {
  return sold - (units - left);
}

export function isExact(tally: Tally): boolean {
  const expected = Math.min(tally.units, tally.buyers);
  return tally.sold === expected && tally.orders === expected && lost(tally) === 0;
}

export function salesPerSecond({ sold, seconds }: Tally): number {
  return sold / seconds;
}
