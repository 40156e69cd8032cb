import { startWorker, type Worker } from '../../test/support/worker.js';
import type { Order, Task, Told } from './shop.worker.js';

/** Processes, and callers in each. */
export const PROCESSES = 3;
export const CALLERS = 4;
/** Longer than any contestant waits for its turn; ms. */
const ANSWER_WITHIN = 15_000;
/** tsx compiles a process first, on a machine that may be busy; ms. */
const READY_WITHIN = 60_000;
/** If no sale of a process has read its row for so long, it is not frozen; ms. */
const MIDDLE_WITHIN = 5_000;
/** After the last answer, until the process says that it is done; ms. */
const DONE_WITHIN = ANSWER_WITHIN + 5_000;
const FOR_EVER = 2 ** 31 - 1;
/** Of what a process wrote before it died. */
const LINES_KEPT = 12;

type Selling = Omit<Task, 'name' | 'callers' | 'answerWithin'>;

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
      await Promise.all(Array.from({ length: PROCESSES }, (_, place) => crew.#hire(place)));
      return crew;
    } catch (error) {
      await crew.kill();
      throw error;
    }
  }

  /** The process of this place stands still in the middle of a sale until `over`. Resolves to whether it did. */
  async freeze(place: number, over: () => Promise<unknown>): Promise<boolean> {
    const worker = await this.#places[place];
    if (worker === undefined) return false;
    command(worker, 'wait');
    try {
      await worker.next('in the middle', { within: MIDDLE_WITHIN });
      worker.freeze();
      await over();
      return true;
    } catch {
      return false;
    } finally {
      command(worker, 'go on');
      worker.thaw();
    }
  }

  /** The process of this place crashes. Resolves when another one sells in its place. */
  async replace(place: number): Promise<boolean> {
    const worker = await this.#places[place];
    await worker?.kill();
    await this.#hire(place);
    return true;
  }

  /** Lets all sales end that have begun. */
  async stop(): Promise<void> {
    this.#isOver = true;
    const working = await Promise.all(this.#places);
    for (const worker of working) command(worker, 'stop');
    await Promise.allSettled(working.map((worker) => worker.next('done', { within: DONE_WITHIN })));
    await this.kill();
    await Promise.all(this.#heard);
  }

  async kill(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#all.map((worker) => worker.kill()));
  }

  #hire(place: number): Promise<Worker> {
    const hired = this.#start(place);
    this.#places[place] = hired;
    // Whoever wants it next hears of it.
    hired.catch(() => {});
    return hired;
  }

  async #start(place: number): Promise<Worker> {
    const name = `${place}.${this.#all.length}`;
    const task: Task = { ...this.#selling, callers: CALLERS, answerWithin: ANSWER_WITHIN, name };
    const worker = startWorker(new URL('shop.worker.ts', import.meta.url), [JSON.stringify(task)]);
    this.#all.push(worker);
    await worker.next('ready', { within: READY_WITHIN });
    this.#heard.push(this.#hear(worker));
    void worker.exited.then(({ signal }) => {
      if (this.#isOver || signal === 'SIGKILL') return;
      this.died.push(worker.output.trim().split('\n').slice(-LINES_KEPT).join('\n'));
      this.#hire(place);
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
}

function command(worker: Worker, type: Order['type']): void {
  worker.send({ type });
}
