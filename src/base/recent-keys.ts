import { now } from './clock.js';
import { dropOldest } from './drop-oldest.js';

/** Names that were noted lately, each for a time. Beyond the maximum number, the oldest are dropped. */
export class RecentKeys {
  readonly #until = new Map<string, number>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Notes the name for `ms`, counted from now. */
  note(name: string, ms: number): void {
    this.#until.delete(name);
    this.#until.set(name, now() + ms);
    if (this.#until.size > this.#most) dropOldest(this.#until);
  }

  has(name: string): boolean {
    const until = this.#until.get(name);
    return until !== undefined && now() < until;
  }
}
