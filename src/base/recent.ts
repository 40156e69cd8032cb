import { now } from './clock.js';

/** What has happened lately, by name; of very many names those that are longest ago are forgotten. */
export class Recent {
  readonly #until = new Map<string, number>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** From now on, for `ms`. */
  note(name: string, ms: number): void {
    this.#until.delete(name);
    this.#until.set(name, now() + ms);
    if (this.#until.size <= this.#most) return;
    for (const oldest of this.#until.keys()) {
      this.#until.delete(oldest);
      return;
    }
  }

  has(name: string): boolean {
    const until = this.#until.get(name);
    return until !== undefined && now() < until;
  }
}
