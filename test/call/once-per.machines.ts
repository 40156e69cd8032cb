import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { startWorker, type Worker, type WorkerMessage } from '../support/worker.js';

/** Something that may have ended a run, or kept everybody from one; milliseconds since the Unix epoch. */
export interface Crash {
  readonly kind: string;
  readonly from: number;
  readonly until: number;
}

/** Processes that all run the same job. They are killed and frozen while they work, and each killed one is replaced. */
export class Machines {
  readonly crashes: Crash[] = [];
  readonly #start: () => Worker;
  readonly #workers: Worker[];
  /** Those that were answered once at least. */
  readonly #answered = new Set<Worker>();
  readonly #answers: number[] = [];
  /** What became of runs, and when that was told. */
  readonly #told: Array<{ readonly at: number; readonly what: string; readonly pid: number }> = [];
  #begun: (worker: Worker) => void = () => {};

  constructor(count: number, args: readonly string[]) {
    this.#start = () => {
      const worker = startWorker(new URL('./once-per.worker.ts', import.meta.url), args);
      void this.#listen(worker, 'inside', () => {
        this.#note('begun', worker);
        this.#begun(worker);
      });
      void this.#listen<WorkerMessage & { ran: boolean; failed?: string }>(worker, 'told', ({ ran, failed }) => {
        this.#answered.add(worker);
        this.#answers.push(Date.now());
        if (ran || failed !== undefined) this.#note(failed ?? 'ran', worker);
      });
      return worker;
    };
    this.#workers = Array.from({ length: count }, () => this.#start());
  }

  /** Resolves when each of them has asked for a run. */
  async ready(): Promise<void> {
    await eventually('all have asked', async () => this.#answered.size === this.#workers.length, { within: 60_000 });
  }

  /** How many calls ended between these times; milliseconds since the Unix epoch. */
  answers(from: number, until: number): number {
    return this.#answers.filter((at) => at >= from && at < until).length;
  }

  /** What became of the runs between these times. */
  told(from: number, until: number): readonly string[] {
    const between = this.#told.filter(({ at }) => at >= from && at < until);
    return between.map(({ at, what, pid }) => `${at - from} ms: ${what} (${pid})`);
  }

  /** How many runs ended between these times with this error. */
  ended(from: number, until: number, error: string): number {
    return this.#told.filter(({ at, what }) => at >= from && at < until && what === error).length;
  }

  /** The longest time between these times in which no call ended; milliseconds. */
  longestPause(from: number, until: number): number {
    const ends = [from, ...this.#answers.filter((at) => at >= from && at < until), until];
    return Math.max(...ends.slice(1).map((at, index) => at - (ends[index] as number)));
  }

  /** Kills the next one that works, between the begin of its work and a moment behind its end, and starts another one. */
  async kill(within: number): Promise<void> {
    const worker = await this.#atWork(within);
    if (worker === undefined) return;
    await sleep(Math.random() * 100);
    await this.during('kill', () => worker.kill());
    this.#workers[this.#workers.indexOf(worker)] = this.#start();
  }

  /** Freezes the next one that works. It goes on after `time`. */
  async freeze(within: number, time: number): Promise<void> {
    const worker = await this.#atWork(within);
    if (worker === undefined) return;
    await this.during('freeze', async () => {
      worker.freeze();
      await sleep(time);
      worker.thaw();
    });
  }

  /** Notes a crash, from the begin to the end of `fault`. */
  async during(kind: string, fault: () => unknown): Promise<void> {
    const from = Date.now();
    await fault();
    this.crashes.push({ kind, from, until: Date.now() });
  }

  async end(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.kill()));
  }

  /** The next one that says that its work has begun. */
  async #atWork(within: number): Promise<Worker | undefined> {
    const next = new Promise<Worker>((resolve) => {
      this.#begun = resolve;
    });
    return await Promise.race([next, sleep(within, undefined)]);
  }

  #note(what: string, { pid }: Worker): void {
    this.#told.push({ at: Date.now(), what, pid });
  }

  async #listen<M extends WorkerMessage>(worker: Worker, type: string, heard: (message: M) => void): Promise<void> {
    for (;;) {
      let message: M;
      try {
        message = await worker.next<M>(type, { within: 3_600_000 });
      } catch {
        return; // It has ended.
      }
      heard(message);
    }
  }
}

/** Commits one small transaction after another, to tell when the machine had no time or its disk was busy. */
export class Commits {
  readonly #commit: () => Promise<unknown>;
  /** When each began, and when the next one did; milliseconds since the Unix epoch. */
  readonly #times: Array<readonly [from: number, until: number]> = [];
  #ended = false;
  readonly #all: Promise<void>;

  constructor(commit: () => Promise<unknown>) {
    this.#commit = commit;
    this.#all = this.#run();
  }

  /** The longest one of those that lie in part between these times; milliseconds. */
  longest(from: number, until: number): number {
    const there = this.#times.filter(([begun, done]) => begun < until && done > from);
    return Math.max(...there.map(([begun, done]) => done - begun));
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#all;
  }

  async #run(): Promise<void> {
    let from = Date.now();
    while (!this.#ended) {
      // One that fails, as while Postgres restarts, has taken until the next one that does not.
      const failed = await this.#commit().then(
        () => false,
        () => true,
      );
      await sleep(20);
      if (failed) continue;
      const until = Date.now();
      this.#times.push([from, until]);
      from = until;
    }
  }
}

/**
 * The intervals without a run that no crash explains. A crash explains one, in which it happened or the one behind; and
 * all those that lie in it where `isAway` says that nothing could run meanwhile.
 */
export function unexplained(
  skipped: readonly number[],
  interval: number,
  crashes: readonly Crash[],
  isAway: (crash: Crash) => boolean,
): number[] {
  const unused = [...crashes].sort((a, b) => a.until - b.until);
  return skipped.filter((number) => {
    const [begin, end] = [number * interval, (number + 1) * interval];
    if (crashes.some((crash) => isAway(crash) && crash.from <= begin && crash.until >= end)) return false;
    const why = unused.findIndex(({ from, until }) => from < end && until + interval > begin);
    if (why >= 0) unused.splice(why, 1);
    return why < 0;
  });
}
