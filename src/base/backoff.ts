/** How long to pause between the tries of something that fails: each pause is twice as long, up to the longest; milliseconds. */
export class Backoff {
  readonly #first: number;
  readonly #longest: number;
  #pause: number;

  constructor(first: number, longest: number) {
    this.#first = first;
    this.#longest = longest;
    this.#pause = first;
  }

  /** The pause before the next try. */
  next(): number {
    const pause = this.#pause;
    this.#pause = Math.min(2 * pause, this.#longest);
    return pause;
  }

  /** Begins with the first pause again. */
  reset(): void {
    this.#pause = this.#first;
  }
}
