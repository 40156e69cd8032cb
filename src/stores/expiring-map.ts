import { now } from '../base/clock.js';

interface Entry<V> {
  readonly value: V;
  readonly ends: number;
}

/** Values that end by themselves, as the keys of Redis do that have an expiry. */
export class ExpiringMap<V> {
  readonly #entries = new Map<string, Entry<V>>();
  #sweep = this.#entries.entries();

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
    this.#entries.set(key, { value, ends: now() + time });
    // No timer deletes what has ended: each new value looks at the next two, round and round.
    for (let each = 0; each < 2; each++) {
      const next = this.#sweep.next();
      if (next.done) this.#sweep = this.#entries.entries();
      else if (this.get(next.value[0]) === undefined) this.#entries.delete(next.value[0]);
    }
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
}
