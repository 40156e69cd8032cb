/** From this time on, a COMMIT takes longer than the next process needs to begin its transaction; milliseconds. */
const LONG = 1;
/** The weight of the last COMMIT in the average. */
const WEIGHT = 1 / 8;

/** How long the COMMITs of one client take: a moving average. */
export class CommitTimes {
  #average: number | undefined;

  note(ms: number): void {
    this.#average = this.#average === undefined ? ms : this.#average + (ms - this.#average) * WEIGHT;
  }

  /**
   * Whether it is worth telling the next process that COMMIT has been sent. If COMMIT is short, that process takes the
   * processor that Postgres needs for it, and has nothing from it. True if it is unknown.
   */
  get areLong(): boolean {
    return this.#average === undefined || this.#average >= LONG;
  }
}
