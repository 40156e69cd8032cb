import { type FaultProxy, startFaultProxy } from '../fault-proxy.js';
import { startWorker, type Worker } from '../worker.js';
import type { Cast, Go, HandedOver, Site, ToWorker } from './messages.js';
import type { Fairness } from './ways/client.js';

const WORKER = new URL('./workload.worker.ts', import.meta.url);

/** The lines of one worker to its servers, each to be hurt alone. */
export interface Lines {
  readonly postgres: FaultProxy;
  readonly commands: FaultProxy;
  readonly wakeUps: FaultProxy;
}

/** What an actor is told of the others, and tells them. */
interface Surroundings {
  readonly fairness: Fairness;
  onExit(worker: string, what: string): void;
  /** Its process gives a handle away. */
  onHandedOver(given: HandedOver): void;
}

/** A worker's part, played by one process after another, since some are killed. */
export class Actor {
  readonly name: string;
  readonly lines: Lines;
  readonly #urls: Pick<Site, 'databaseUrl' | 'redisUrl'>;
  /** Loaded and idle, so that a killed worker is missed for a moment only. */
  #understudy: Worker;
  #worker: Worker | undefined;
  #processes = 0;
  #part: Go | undefined;
  /** Its processes that were killed on purpose. */
  readonly killed: string[] = [];
  readonly #surroundings: Surroundings;

  static async open(
    name: string,
    urls: Pick<Site, 'databaseUrl' | 'redisUrl'>,
    surroundings: Surroundings,
  ): Promise<Actor> {
    const [postgres, commands, wakeUps] = await Promise.all([
      startFaultProxy(target(urls.databaseUrl)),
      startFaultProxy(target(urls.redisUrl)),
      startFaultProxy(target(urls.redisUrl)),
    ]);
    const actor = new Actor(name, { postgres, commands, wakeUps }, urls, surroundings);
    await actor.enter();
    return actor;
  }

  private constructor(
    name: string,
    lines: Lines,
    urls: Pick<Site, 'databaseUrl' | 'redisUrl'>,
    surroundings: Surroundings,
  ) {
    this.name = name;
    this.lines = lines;
    this.#urls = urls;
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
    const { databaseUrl, redisUrl } = this.#urls;
    const { postgres, commands, wakeUps } = this.lines;
    const name = this.process;
    const ours = new URL(postgres.url(databaseUrl));
    ours.searchParams.set('application_name', name);
    const site: Site = {
      databaseUrl: ours.href,
      redisUrl: commands.url(redisUrl),
      wakeUpsUrl: wakeUps.url(redisUrl),
    };
    const { fairness, onExit } = this.#surroundings;
    const cast: Cast = { type: 'cast', name, site, fairness };
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
    await Promise.all(Object.values(this.lines).map((line: FaultProxy) => line.close()));
  }
}

function target(url: string) {
  const { hostname: host, port } = new URL(url);
  return { host, port: Number(port) };
}
