/** Upper ends of the columns of the histogram; milliseconds. The last column has no end. */
const WAIT_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] as const;

/** A histogram of how long callers of this process waited. */
export class Waits {
  readonly #counts: number[] = Array(WAIT_BOUNDS.length + 1).fill(0);
  #longest = 0;

  note(ms: number): void {
    const column = WAIT_BOUNDS.findIndex((bound) => ms <= bound);
    const at = column < 0 ? WAIT_BOUNDS.length : column;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#longest = Math.max(this.#longest, ms);
  }

  toJSON() {
    return { bounds: WAIT_BOUNDS, counts: this.#counts, longest: Math.round(this.#longest * 10) / 10 };
  }
}
