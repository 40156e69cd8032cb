/** How long one bar of a chart is; milliseconds. */
export const BAR = 5_000;
/** Bars of a chart: five minutes. */
const BARS = 60;
/** Keys that nobody has or waits for any more, and that had turns lately: no more of them are remembered. */
const MOST_IDLE = 1_000;

/** The turns of one key in the last minutes, bar by bar, and how many processes waited at most. */
export class KeyHistory {
  readonly turns: number[] = Array(BARS).fill(0);
  readonly waiting: number[] = Array(BARS).fill(0);
  #bar: number;
  #last: bigint | undefined;

  constructor(bar: number) {
    this.#bar = bar;
  }

  /**
   * Turns since the last look go to the bar of this one. `continuous`: there was a look just before; otherwise nobody
   * knows when they were.
   */
  note(bar: number, turns: bigint, waiting: number, continuous: boolean): void {
    this.shift(bar);
    const fresh = this.#last === undefined || !continuous ? 0n : turns - this.#last;
    this.#last = turns;
    const now = BARS - 1;
    // Fewer than before: the row was collected as idle, and is counted anew.
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

/** Of all keys that were seen lately. */
export class Histories {
  readonly #byKey = new Map<string, KeyHistory>();

  /** Keys to ask about although nobody has them or waits. */
  get keys(): readonly string[] {
    return [...this.#byKey.keys()];
  }

  of(key: string): KeyHistory | undefined {
    return this.#byKey.get(key);
  }

  /** The one of this key, as the one that was used last. */
  use(key: string, bar: number): KeyHistory {
    const history = this.#byKey.get(key) ?? new KeyHistory(bar);
    this.#byKey.delete(key);
    this.#byKey.set(key, history);
    return history;
  }

  /** Forgets keys that are not in use and had no turn for the length of a chart, and of the others those beyond the most. */
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
