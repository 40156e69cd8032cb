import { now } from '../base/clock.js';

/** The number of values from which on those that have ended are deleted. */
const SWEEP_AT = 1_024;

/** Values that end by themselves, as the keys of Redis do that have an expiry. */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, { readonly value: V; readonly ends: number }>();
  #sweepAt = SWEEP_AT;

  /** The value, unless it has ended. */
  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.ends > now() ? entry.value : undefined;
  }

  /** Milliseconds until the value ends; 0 if there is none. */
  left(key: string): number {
    return Math.max(0, (this.#entries.get(key)?.ends ?? 0) - now());
  }

  /** @param time milliseconds for which the value is kept. */
  set(key: string, value: V, time: number): void {
    if (this.#entries.size >= this.#sweepAt) this.#sweep();
    this.#entries.set(key, { value, ends: now() + time });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** The keys of all values, and of some that have ended. */
  keys(): Iterable<string> {
    return this.#entries.keys();
  }

  /** Deletes the values that have ended: no timer does. */
  #sweep(): void {
    for (const key of this.#entries.keys()) if (this.get(key) === undefined) this.#entries.delete(key);
    // The next sweep comes when the map has doubled, so the cost for each `set` stays constant.
    this.#sweepAt = Math.max(SWEEP_AT, 2 * this.#entries.size);
  }
}
