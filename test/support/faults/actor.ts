import { startWorker, type Worker } from '../worker.js';
import { Lines, type Servers } from './lines.js';
import type { Cast, Go, HandedOver, Leases, ToWorker } from './messages.js';
import type { Kind } from './ways/client.js';

const WORKER = new URL('./workload.worker.ts', import.meta.url);

/** What an actor is told of the others, and tells them. */
interface Surroundings extends Kind {
  onExit(worker: string, what: string): void;
  /** Its process gives a handle away. */
  onHandedOver(given: HandedOver): void;
}

/** A worker's part, played by one process after another, since some are killed. */
export class Actor {
  readonly name: string;
  readonly lines: Lines;
  /** Loaded and idle, so that a killed worker is missed for a moment only. */
  #understudy: Worker;
  #worker: Worker | undefined;
  #processes = 0;
  #part: Go | undefined;
  /** Its processes that were killed on purpose. */
  readonly killed: string[] = [];
  readonly #surroundings: Surroundings;

  static async open(name: string, servers: Servers, surroundings: Surroundings): Promise<Actor> {
    const actor = new Actor(name, await Lines.open(servers), surroundings);
    await actor.enter();
    return actor;
  }

  private constructor(name: string, lines: Lines, surroundings: Surroundings) {
    this.name = name;
    this.lines = lines;
    this.#surroundings = surroundings;
    this.#understudy = startWorker(WORKER);
  }

  /** The process that plays it now: a name that no other one has had. */
  get process(): string {
    return `${this.name}-${this.#processes}`;
  }

  get worker(): Worker {
    if (this.#worker === undefined) throw new Error(`${this.name} has not entered`);
    return this.#worker;
  }

  get callers(): string[] {
    return Array.from({ length: this.#part?.callers ?? 0 }, (_, caller) => `${this.process}.${caller}`);
  }

  /** The next process takes over, with what the last one had to do. */
  async enter(): Promise<void> {
    const worker = this.#understudy;
    this.#understudy = startWorker(WORKER);
    await worker.next('here');
    this.#worker = worker;
    this.#processes++;
    const name = this.process;
    const { fairness, wake, fenced, pooled, face, onExit } = this.#surroundings;
    const cast: Cast = { type: 'cast', name, site: this.lines.site(name), fairness, wake, fenced, pooled, face };
    worker.send(cast);
    void this.#passOn(worker);
    void worker.exited.then((exit) => {
      if (!this.killed.includes(name)) onExit(name, `ended by itself: ${JSON.stringify(exit)}\n${worker.output}`);
    });
    if (this.#part) await this.go(this.#part);
  }

  async go(part: Go): Promise<void> {
    this.#part = part;
    this.worker.send(part);
    await this.worker.next('going');
  }

  /** Ends this process as a crash would; the next one has to `enter`. */
  async die(): Promise<void> {
    this.killed.push(this.process);
    await this.worker.kill();
  }

  tell(message: ToWorker): void {
    this.worker.send(message);
  }

  /** Resolves to whether it answers within that time. */
  async answers(type: string, within: number): Promise<boolean> {
    return await this.worker.next(type, { within }).then(
      () => true,
      () => false,
    );
  }

  /** The keys that this process holds in its memory. */
  async leases(): Promise<string[]> {
    this.tell({ type: 'list' });
    return [...(await this.worker.next<Leases>('leases')).keys];
  }

  /** To the end of that process. */
  async #passOn(worker: Worker): Promise<void> {
    for (;;) {
      const given = await worker.next<HandedOver>('handed over', { within: 2 ** 31 - 1 }).catch(() => undefined);
      if (given === undefined) return;
      this.#surroundings.onHandedOver(given);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.die(), this.#understudy.kill()]);
    await this.lines.close();
  }
}
