import { after, now, OVERDUE, stop, type Timer, within } from '../../base/clock.js';
import { brief } from './health.js';
import { Keys } from './keys.js';
import type { BoardSource, Finding, Happening, Health, ServerState } from './source.js';

/** Time between two health checks: while all servers are well, and while one has a fault; milliseconds. */
const HEALTH_EVERY = { well: 5_000, ill: 1_000 };
/** A look without an answer for so long is reported to viewers; milliseconds. The next look still waits for its end. */
const LOOK_WITHIN = 3_000;
/** How many events of this process are shown. */
const SHOWN = 10;
/** Upper ends of the columns of the histogram of waits; milliseconds. The last column has no end. */
const WAIT_BOUNDS = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000];

/** The number that an event of this type belongs to. */
const COUNTED: Readonly<Record<string, 'timeouts' | 'refused' | 'lost'>> = {
  timeout: 'timeouts',
  'stale-write': 'refused',
  'lease-lost': 'lost',
};

/** What viewers are sent beside the keys. */
export interface Status {
  /** How long the last look took; milliseconds. */
  readonly took: number;
  /** When the keys were seen last; `undefined` before the first look since the board was opened. */
  readonly seenAt: number | undefined;
  /** Why the keys cannot be read now. */
  readonly trouble: string | undefined;
  /** For each server whose keys are missing: one sentence that says why. */
  readonly missing: readonly string[];
  readonly health: readonly Finding[];
  /** `undefined` as long as it is not known which one it is. */
  readonly postgres: ServerState | undefined;
  readonly redis: readonly ServerState[];
}

/** What viewers are sent: the name of a server-sent event, and its data. */
export type Send = (event: string, data: object) => void;

/** What this process has told since the board was opened. */
export class Happened {
  /** The newest first. */
  readonly happened: Array<Happening & { readonly at: number }> = [];
  timeouts = 0;
  refused = 0;
  lost = 0;
  readonly waits = { bounds: WAIT_BOUNDS, counts: Array<number>(WAIT_BOUNDS.length + 1).fill(0), longest: 0 };

  note(happening: Happening): void {
    this.happened.unshift({ at: Date.now(), ...happening });
    this.happened.splice(SHOWN);
    const name = COUNTED[happening.type];
    if (name !== undefined) this[name]++;
  }

  waited(ms: number): void {
    const { bounds, counts, longest } = this.waits;
    const column = bounds.findIndex((bound) => ms <= bound);
    const at = column < 0 ? bounds.length : column;
    counts[at] = (counts[at] ?? 0) + 1;
    this.waits.longest = Math.max(longest, ms);
  }
}

/**
 * Polls the servers for all viewers: from the arrival of the first one until the last one has left. After each look it
 * pauses at least as long as the look took.
 */
export class Poller {
  readonly #source: BoardSource;
  readonly #interval: number;
  readonly #send: Send;
  readonly #keys = new Keys();
  #happened = new Happened();
  /** The text of `#happened` as it was sent last. */
  #told = '';
  #health: Health = { findings: [] };
  #healthAt = Number.NEGATIVE_INFINITY;
  /** The round whose health check is at work. */
  #checking: number | undefined;
  #trouble: string | undefined;
  #missing: readonly string[] = [];
  #took = 0;
  /** By the clock of this machine; `undefined` before the first look of this round. */
  #seenAt: number | undefined;
  #timer: Timer | undefined;
  #unwatch: (() => void) | undefined;
  /** Changes with each start and stop. The result of an earlier round is not sent. */
  #round = 0;

  constructor(source: BoardSource, interval: number, send: Send) {
    this.#source = source;
    this.#interval = interval;
    this.#send = send;
  }

  start(): void {
    if (this.#unwatch !== undefined) return;
    const round = ++this.#round;
    const happened = new Happened();
    this.#happened = happened;
    // The charts stay, and are moved to the present by the next look.
    this.#keys.interrupt();
    this.#seenAt = undefined;
    this.#trouble = undefined;
    this.#unwatch = this.#source.process?.watch(happened) ?? (() => {});
    void this.#run(round);
    void this.#lookAtHealth(round);
  }

  stop(): void {
    this.#round++;
    stop(this.#timer);
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#source.rest?.();
  }

  /** All that a new viewer needs. */
  everything(): ReadonlyArray<readonly [event: string, data: object]> {
    // Before the first look an empty list would say that there are no keys.
    const known = this.#seenAt === undefined ? [] : [['keys', this.#keys.all()] as const];
    return [...known, ['status', this.#status()], ['happened', this.#happened]];
  }

  /** Looks at once, as after a force release. */
  hurry(): void {
    if (this.#unwatch === undefined || this.#timer === undefined) return;
    stop(this.#timer);
    void this.#run(this.#round);
  }

  async #run(round: number): Promise<void> {
    this.#timer = undefined;
    const since = now();
    await this.#look(round);
    if (round !== this.#round) return;
    this.#took = now() - since;
    this.#tell();
    this.#timer = after(Math.max(this.#interval - this.#took, this.#took), () => void this.#run(round));
  }

  async #look(round: number): Promise<void> {
    try {
      const looking = this.#source.look(this.#keys.names);
      if ((await within(looking, LOOK_WITHIN)) === OVERDUE && round === this.#round) {
        this.#troubled(`no answer for ${LOOK_WITHIN / 1_000} s`);
        this.#tell();
      }
      const { keys, missing = [] } = await looking;
      if (round !== this.#round) return;
      const changes = this.#keys.update(keys, this.#source.process?.callers());
      const isFirst = this.#seenAt === undefined;
      this.#seenAt = Date.now();
      this.#trouble = undefined;
      this.#missing = missing;
      // Pages that came before the first look know no key, or those of before.
      this.#send('keys', isFirst ? this.#keys.all() : changes);
    } catch (error) {
      if (round === this.#round) this.#troubled(brief(error));
    }
  }

  #troubled(text: string): void {
    // The health check tells which of the servers it is, so it is done now.
    if (this.#trouble === undefined) this.#healthAt = Number.NEGATIVE_INFINITY;
    this.#trouble = text;
    this.#keys.interrupt();
  }

  #tell(): void {
    const told = JSON.stringify(this.#happened);
    if (told !== this.#told) this.#send('happened', this.#happened);
    this.#told = told;
    this.#send('status', this.#status());
    const isIll = this.#health.findings.some(({ status }) => status === 'fault');
    if (now() - this.#healthAt >= HEALTH_EVERY[isIll ? 'ill' : 'well']) void this.#lookAtHealth(this.#round);
  }

  async #lookAtHealth(round: number): Promise<void> {
    if (this.#checking === round) return;
    this.#checking = round;
    this.#healthAt = now();
    const health = await this.#source.health();
    if (round !== this.#round) return;
    this.#checking = undefined;
    // Which database does not answer is what somebody wants to know then.
    this.#health = { database: this.#health.database, ...health };
    this.#send('status', this.#status());
  }

  #status(): Status {
    return {
      took: Math.round(this.#took * 10) / 10,
      seenAt: this.#seenAt,
      trouble: this.#trouble,
      missing: this.#missing,
      health: this.#health.findings,
      postgres: postgresOf(this.#health),
      redis: this.#source.topology(),
    };
  }
}

/** The database, as far as it is known, with the result of the last health check. */
function postgresOf({ database, findings }: Health): ServerState | undefined {
  if (database === undefined) return undefined;
  const healthy = !findings.some(isUnreachable);
  return { address: database, role: 'database', status: healthy ? 'answers' : 'does not answer', healthy };
}

function isUnreachable({ server, check, status }: Finding): boolean {
  return server === 'postgres' && check === 'connection' && status === 'fault';
}
