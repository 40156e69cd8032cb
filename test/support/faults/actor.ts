import { type FaultProxy, startFaultProxy } from '../fault-proxy.js';
import { startWorker, type Worker } from '../worker.js';
import type { Cast, Go, Site, ToWorker } from './messages.js';

const WORKER = new URL('./workload.worker.ts', import.meta.url);

/** The lines of one worker to its servers, each to be hurt alone. */
export interface Lines {
  readonly postgres: FaultProxy;
  readonly commands: FaultProxy;
  readonly wakeUps: FaultProxy;
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
  readonly #onExit: (worker: string, what: string) => void;

  static async open(
    name: string,
    urls: Pick<Site, 'databaseUrl' | 'redisUrl'>,
    onExit: (worker: string, what: string) => void,
  ): Promise<Actor> {
    const [postgres, commands, wakeUps] = await Promise.all([
      startFaultProxy(target(urls.databaseUrl)),
      startFaultProxy(target(urls.redisUrl)),
      startFaultProxy(target(urls.redisUrl)),
    ]);
    const actor = new Actor(name, { postgres, commands, wakeUps }, urls, onExit);
    await actor.enter();
    return actor;
  }

  private constructor(
    name: string,
    lines: Lines,
    urls: Pick<Site, 'databaseUrl' | 'redisUrl'>,
    onExit: (worker: string, what: string) => void,
  ) {
    this.name = name;
    this.lines = lines;
    this.#urls = urls;
    this.#onExit = onExit;
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
    const cast: Cast = { type: 'cast', name, site };
    worker.send(cast);
    void worker.exited.then((exit) => {
      if (!this.killed.includes(name)) this.#onExit(name, `ended by itself: ${JSON.stringify(exit)}\n${worker.output}`);
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

  async close(): Promise<void> {
    await Promise.all([this.die(), this.#understudy.kill()]);
    await Promise.all(Object.values(this.lines).map((line: FaultProxy) => line.close()));
  }
}

function target(url: string) {
  const { hostname: host, port } = new URL(url);
  return { host, port: Number(port) };
}
