import { after, now, OVERDUE, stop, type Timer, within } from '../../base/clock.js';
import { brief } from './health.js';
import type { Keys } from './keys.js';
import { Happened, watchProcess } from './process.js';
import type { BoardSource, Finding, Health, ServerState } from './source.js';

/** Time between two health checks: while all servers are well, and while one has a fault; milliseconds. */
const HEALTH_EVERY = { well: 5_000, ill: 1_000 };
/** A look without an answer for so long is reported to viewers; milliseconds. The next look still waits for its end. */
const LOOK_WITHIN = 3_000;

/** What does not change while a board is served. */
interface Settings {
  /** Milliseconds between two looks. */
  readonly interval: number;
  /** Only if keys may be taken from their holders. */
  readonly token: string | undefined;
}

/** What viewers are sent beside the keys. */
export interface Status extends Settings {
  /** How long the last look took; milliseconds. */
  readonly took: number;
  /** When the keys were seen last, by the clock of this machine; `undefined` before the first look since the board was opened. */
  readonly seenAt: number | undefined;
  /** Why the keys cannot be read now. */
  readonly trouble: string | undefined;
  readonly health: readonly Finding[];
  /** `undefined` as long as it is not known which one it is. */
  readonly postgres: ServerState | undefined;
  readonly redis: readonly ServerState[];
  /** `undefined` if the process of the board takes no locks. */
  readonly happened: Happened | undefined;
}

/** What viewers are sent: the name of a server-sent event, and its data. */
export type Send = (event: 'keys' | 'status', data: object) => void;

/**
 * Polls the servers for all viewers, until it is stopped: from the arrival of the first one until the last one has left. After
 * each look it pauses at least as long as the look took.
 */
export class Poller {
  readonly #source: BoardSource;
  readonly #keys: Keys;
  readonly #settings: Settings;
  readonly #send: Send;
  readonly #happened: Happened | undefined;
  readonly #unwatch: () => void = () => {};
  #health: Health = { findings: [] };
  #healthAt = 0;
  #isChecking = false;
  #trouble: string | undefined;
  #took = 0;
  #seenAt: number | undefined;
  #timer: Timer | undefined;
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
    void this.#look();
    void this.#lookAtHealth();
  }

  stop(): void {
    this.#isStopped = true;
    stop(this.#timer);
    this.#unwatch();
  }

  /** All that a new viewer needs. */
  everything(): ReadonlyArray<readonly [event: 'keys' | 'status', data: object]> {
    // Before the first look an empty list would say that there are no keys.
    const known = this.#seenAt === undefined ? [] : [['keys', this.#keys.all()] as const];
    return [['status', this.#status()], ...known];
  }

  async #look(): Promise<void> {
    const since = now();
    try {
      const looking = this.#source.look(this.#keys.names);
      if ((await within(looking, LOOK_WITHIN)) === OVERDUE) {
        this.#troubled(`no answer for ${LOOK_WITHIN / 1_000} s`);
        this.#sendStatus();
      }
      const states = await looking;
      if (this.#isStopped) return;
      const changes = this.#keys.update(states, this.#source.callers?.());
      // Pages that came before the first look know no key, or those of before.
      this.#send('keys', this.#seenAt === undefined ? this.#keys.all() : changes);
      this.#seenAt = Date.now();
      this.#trouble = undefined;
    } catch (error) {
      this.#troubled(brief(error));
    }
    if (this.#isStopped) return;
    this.#took = now() - since;
    this.#sendStatus();
    const isIll = this.#health.findings.some(({ status }) => status === 'fault');
    if (now() - this.#healthAt >= HEALTH_EVERY[isIll ? 'ill' : 'well']) void this.#lookAtHealth();
    this.#timer = after(Math.max(this.#settings.interval - this.#took, this.#took), () => void this.#look());
  }

  #troubled(text: string): void {
    if (this.#isStopped) return;
    // The health check tells which of the servers it is.
    if (this.#trouble === undefined) void this.#lookAtHealth();
    this.#trouble = text;
    this.#keys.interrupt();
  }

  async #lookAtHealth(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    this.#healthAt = now();
    const health = await this.#source.health();
    this.#isChecking = false;
    // Which database does not answer is what somebody wants to know then.
    this.#health = { database: this.#health.database, ...health };
    this.#sendStatus();
  }

  #sendStatus(): void {
    if (!this.#isStopped) this.#send('status', this.#status());
  }

  #status(): Status {
    const { database, findings } = this.#health;
    const isAway = findings.some(({ server, check, status }) => {
      return server === 'postgres' && check === 'connection' && status === 'fault';
    });
    const answers = isAway ? 'does not answer' : 'answers';
    return {
      ...this.#settings,
      took: Math.round(this.#took * 10) / 10,
      seenAt: this.#seenAt,
      trouble: this.#trouble,
      health: findings,
      postgres:
        database === undefined ? undefined : { address: database, role: 'database', status: answers, healthy: !isAway },
      redis: this.#source.topology(),
      happened: this.#happened,
    };
  }
}
