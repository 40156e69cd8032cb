/** How long one bar of a chart is; milliseconds. */
export const BAR = 5_000;
/** Bars of a chart: five minutes. */
const BARS = 60;
/** How many keys are remembered that are free now and had turns in the last minutes. */
const MOST_IDLE = 1_000;

/** The chart of one key: for each bar the number of its turns, and the largest number of processes that waited. */
export class KeyHistory {
  readonly turns: number[] = Array(BARS).fill(0);
  readonly waiting: number[] = Array(BARS).fill(0);
  #bar: number;
  #last: bigint | undefined;

  constructor(bar: number) {
    this.#bar = bar;
  }

  /**
   * Adds the turns since the last look to the bar of this look. `continuous`: the last look was just before. If it was not,
   * the time of these turns is unknown, and they are not added.
   */
  note(bar: number, turns: bigint, waiting: number, continuous: boolean): void {
    this.shift(bar);
    const fresh = this.#last === undefined || !continuous ? 0n : turns - this.#last;
    this.#last = turns;
    const now = BARS - 1;
    // Fewer than before: the key's row was deleted as idle, and its counter began at 0 again.
    if (fresh > 0n) this.turns[now] = (this.turns[now] ?? 0) + Number(fresh);
    this.waiting[now] = Math.max(this.waiting[now] ?? 0, waiting);
  }

  shift(bar: number): void {
    const by = Math.min(BARS, Math.max(0, bar - this.#bar));
    this.#bar = Math.max(bar, this.#bar);
    for (const bars of [this.turns, this.waiting]) {
      bars.splice(0, by);
      bars.push(...Array<number>(by).fill(0));
    }
  }

  get isQuiet(): boolean {
    return this.turns.every((count) => count === 0) && this.waiting.every((count) => count === 0);
  }
}

/** The charts of all keys that were in use lately. */
export class Histories {
  readonly #byKey = new Map<string, KeyHistory>();

  /** The keys to ask about, also if they are free now. */
  get keys(): readonly string[] {
    return [...this.#byKey.keys()];
  }

  of(key: string): KeyHistory | undefined {
    return this.#byKey.get(key);
  }

  /** Returns the chart of this key, and marks it as the one that was used last. */
  use(key: string, bar: number): KeyHistory {
    const history = this.#byKey.get(key) ?? new KeyHistory(bar);
    this.#byKey.delete(key);
    this.#byKey.set(key, history);
    return history;
  }

  /** Forgets free keys whose chart is empty, and of the other free keys the ones that were used longest ago, if they are too many. */
  forget(inUse: ReadonlySet<string>, bar: number): void {
    const idle: string[] = [];
    for (const [key, history] of this.#byKey) {
      if (inUse.has(key)) continue;
      history.shift(bar);
      if (history.isQuiet) this.#byKey.delete(key);
      else idle.push(key);
    }
    for (const key of idle.slice(0, Math.max(0, idle.length - MOST_IDLE))) this.#byKey.delete(key);
  }
}
