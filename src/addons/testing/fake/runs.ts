import type { Schedule } from '../../../options/options.js';

/** When the interval ends that this moment is in; milliseconds since the Unix epoch. */
export function nextInterval(at: number, { interval, offset }: Schedule): number {
  return (Math.floor((at - offset) / interval) + 1) * interval + offset;
}

/** The last committed run of each key of `$oncePer`. */
export class Runs {
  readonly #last = new Map<string, number>();

  mark(key: string, ranAt: number): void {
    this.#last.set(key, ranAt);
  }

  clear(): void {
    this.#last.clear();
  }

  /** When the next one is due; `undefined`: now. */
  due(key: string, schedule: Schedule): number | undefined {
    const last = this.#last.get(key);
    // As in Postgres: one that lies ahead by more than an interval does not count.
    if (last === undefined || last > Date.now() + schedule.interval) return undefined;
    const due = Math.max(nextInterval(last, schedule), last + schedule.atLeast);
    return due <= Date.now() ? undefined : due;
  }
}
