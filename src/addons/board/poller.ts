import { after, now, OVERDUE, within } from '../../base/clock.js';
import { brief } from './health.js';
import type { Keys } from './keys.js';
import { Happened, watchProcess } from './process.js';
import type { BoardSource, ServerState } from './source.js';

/** Pause between two health checks; milliseconds. Each is followed by an event, so no proxy finds a connection idle. */
const HEALTH_EVERY = 1_000;
/** A look without an answer for so long is reported to viewers; milliseconds. The next look still waits for its end. */
const LOOK_WITHIN = 3_000;

/** What does not change while a board is served. */
export interface Settings {
  /** Milliseconds between two looks. */
  readonly interval: number;
  /** What a page needs to take keys from their holders; `undefined` if none may be taken. */
  readonly token: string | undefined;
}

/** What viewers are sent beside the keys. */
export interface Status extends Settings {
  /** `undefined` before it was asked. */
  readonly postgres: ServerState | undefined;
  readonly redis: readonly ServerState[];
  /** How long the last look took; milliseconds. */
  readonly took: number;
  /** When the keys were seen last, by the clock of this machine; `undefined` before the first look since the board was opened. */
  readonly seenAt: number | undefined;
  /** Why the keys cannot be read now. */
  readonly trouble: string | undefined;
  /** `undefined` if the process of the board takes no locks. */
  readonly happened: Happened | undefined;
}

/** What viewers are sent: the name of a server-sent event, and its data. */
export type Send = (event: 'keys' | 'status', data: object) => void;

/** Polls the servers for all viewers, until it is stopped: from the arrival of the first one until the last one has left. */
export class Poller {
  readonly #source: BoardSource;
  readonly #keys: Keys;
  readonly #settings: Settings;
  readonly #send: Send;
  readonly #happened: Happened | undefined;
  readonly #unwatch: () => void = () => {};
  #servers: Pick<Status, 'postgres' | 'redis'> = { postgres: undefined, redis: [] };
  #trouble: string | undefined;
  #took = 0;
  #seenAt: number | undefined;
  #isStopped = false;

  /** `keys`: those of before, whose charts stay. */
  constructor(source: BoardSource, keys: Keys, settings: Settings, send: Send) {
    this.#source = source;
    this.#keys = keys;
    this.#settings = settings;
    this.#send = send;
    keys.interrupt();
    if (source.callers) {
      this.#happened = new Happened();
      this.#unwatch = watchProcess(this.#happened);
    }
    void this.#repeat(() => this.#look());
    void this.#repeat(() => this.#lookAtHealth());
  }

  stop(): void {
    this.#isStopped = true;
    this.#unwatch();
  }

  /** All that a new viewer needs. */
  everything(): ReadonlyArray<readonly [event: 'keys' | 'status', data: object]> {
    // Before the first look an empty list would say that there are no keys.
    const known = this.#seenAt === undefined ? [] : [['keys', this.#keys.all()] as const];
    return [['status', this.#status], ...known];
  }

  /** `step` resolves to the pause behind it; milliseconds. */
  async #repeat(step: () => Promise<number>): Promise<void> {
    while (!this.#isStopped) {
      const pause = await step();
      this.#sendStatus();
      // It keeps no process running whose viewers have left.
      await new Promise<void>((resolve) => after(pause, resolve).unref());
    }
  }

  /** The pause is at least as long as the look took. */
  async #look(): Promise<number> {
    const since = now();
    try {
      const looking = this.#source.look(this.#keys.names);
      if ((await within(looking, LOOK_WITHIN)) === OVERDUE) {
        this.#troubled(`no answer for ${LOOK_WITHIN / 1_000} s`);
        this.#sendStatus();
      }
      const states = await looking;
      if (this.#isStopped) return 0;
      const changes = this.#keys.update(states, this.#source.callers?.());
      // Pages that came before the first look know no key, or those of before.
      this.#send('keys', this.#seenAt === undefined ? this.#keys.all() : changes);
      this.#seenAt = Date.now();
      this.#trouble = undefined;
    } catch (error) {
      this.#troubled(brief(error));
    }
    this.#took = now() - since;
    return Math.max(this.#settings.interval - this.#took, this.#took);
  }

  #troubled(text: string): void {
    this.#trouble = text;
    if (!this.#isStopped) this.#keys.interrupt();
  }

  async #lookAtHealth(): Promise<number> {
    this.#servers = await this.#source.health();
    return HEALTH_EVERY;
  }

  #sendStatus(): void {
    if (!this.#isStopped) this.#send('status', this.#status);
  }

  get #status(): Status {
    return {
      ...this.#settings,
      ...this.#servers,
      took: Math.round(this.#took * 10) / 10,
      seenAt: this.#seenAt,
      trouble: this.#trouble,
      happened: this.#happened,
    };
  }
}
