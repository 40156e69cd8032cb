import { startWorker, type Worker } from '../../test/support/worker.js';
import type { Order, Task, Told } from './shop.worker.js';

/** Processes, and callers in each. */
export const PROCESSES = 3;
export const CALLERS = 4;
/** Longer than any contestant tries to take its lock and, where it is gone, to release it; ms. */
const ANSWER_WITHIN = 30_000;
/** tsx compiles a process first, on a machine that may be busy; ms. */
const READY_WITHIN = 60_000;
/** A process none of whose sales has read its row for so long stands still itself; ms. */
const MIDDLE_WITHIN = 5_000;
const FOR_EVER = 2 ** 31 - 1;

type Selling = Pick<Task, 'site' | 'contestant' | 'id' | 'leaseTime'>;

/** The processes that sell, and what their callers were told. One that ends is replaced. */
export class Crew {
  readonly told: Told[] = [];
  /** What those wrote last that ended by themselves. */
  readonly died: string[] = [];
  readonly #selling: Selling;
  readonly #places: Array<Promise<Worker>> = [];
  readonly #all: Worker[] = [];
  readonly #heard: Array<Promise<void>> = [];
  #isOver = false;

  private constructor(selling: Selling) {
    this.#selling = selling;
  }

  /** Resolves when all of them sell. */
  static async start(selling: Selling): Promise<Crew> {
    const crew = new Crew(selling);
    try {
      await Promise.all(Array.from({ length: PROCESSES }, (_, place) => crew.hire(place)));
      return crew;
    } catch (error) {
      await crew.kill();
      throw error;
    }
  }

  /** Lets something happen while a sale of this process has read and not yet written. Resolves to whether one was there. */
  async inTheMiddle(place: number, happens: (worker: Worker) => Promise<unknown>): Promise<boolean> {
    const worker = await (this.#places[place] as Promise<Worker>);
    command(worker, 'wait');
    try {
      await worker.next('in the middle', { within: MIDDLE_WITHIN });
    } catch {
      command(worker, 'go on');
      return false;
    }
    await happens(worker);
    command(worker, 'go on');
    worker.thaw();
    return true;
  }

  /** A new process in this place. Resolves when it sells. */
  hire(place: number): Promise<Worker> {
    const hired = this.#start(place);
    // Whoever wants it next hears of it.
    hired.catch(() => {});
    this.#places[place] = hired;
    return hired;
  }

  async #start(place: number): Promise<Worker> {
    const name = `${place}.${this.#all.length}`;
    const task: Task = { ...this.#selling, name, callers: CALLERS, answerWithin: ANSWER_WITHIN };
    const worker = startWorker(new URL('shop.worker.ts', import.meta.url), [JSON.stringify(task)]);
    this.#all.push(worker);
    await worker.next('ready', { within: READY_WITHIN });
    this.#heard.push(this.#hear(worker));
    void worker.exited.then(({ signal }) => {
      // Those that we end are killed.
      if (this.#isOver || signal === 'SIGKILL') return;
      this.died.push(worker.output.trim());
      this.hire(place);
    });
    return worker;
  }

  async #hear(worker: Worker): Promise<void> {
    try {
      for (;;) this.told.push(await worker.next<Told>('told', { within: FOR_EVER }));
    } catch {
      // It has ended, and all that it said is heard.
    }
  }

  /** Resolves when every sale that has begun has ended, or hangs. */
  async stop(): Promise<void> {
    this.#isOver = true;
    const working = await Promise.all(this.#places);
    for (const worker of working) command(worker, 'stop');
    await Promise.allSettled(working.map((worker) => worker.next('done', { within: 2 * ANSWER_WITHIN })));
    await this.kill();
    await Promise.all(this.#heard);
  }

  async kill(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#all.map((worker) => worker.kill()));
  }
}

function command(worker: Worker, type: Order['type']): void {
  worker.send({ type });
}
