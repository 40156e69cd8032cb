/** The weight of the last value. */
const WEIGHT = 1 / 8;

/** The average of the last values, the latest of which count most. */
export class MovingAverage {
  #average: number | undefined;

  note(value: number): void {
    this.#average = this.#average === undefined ? value : this.#average + (value - this.#average) * WEIGHT;
  }

  /** `false` if there is no value yet. */
  isBelow(limit: number): boolean {
    return this.#average !== undefined && this.#average < limit;
  }
}
