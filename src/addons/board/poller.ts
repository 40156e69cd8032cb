import { after, now, OVERDUE, stop, type Timer, within } from '../../base/clock.js';
import { brief } from './health.js';
import { BAR, Histories } from './history.js';
import { Rows } from './rows.js';
import type { BoardSource, Finding, Happening } from './source.js';
import { Waits } from './waits.js';

/** Time between two health checks: while all servers are well, and while one has a fault; milliseconds. */
const HEALTH_EVERY = { well: 5_000, ill: 1_000 };
/** A look without an answer for so long is reported to viewers; milliseconds. The next look still waits for its end. */
const LOOK_WITHIN = 3_000;
/** How many events of this process are kept for viewers that come later. */
const KEPT = 100;
/** How many events one message has at most. The others are only counted. */
const MOST_AT_ONCE = 50;

/** Bars of a minute. */
const MINUTE = 60_000 / BAR;

const NOTHING_COUNTED = { timeouts: 0, refused: 0, lost: 0 };
/** The number that an event of this type belongs to. */
const COUNTED: Readonly<Record<string, keyof typeof NOTHING_COUNTED>> = {
  timeout: 'timeouts',
  'stale-write': 'refused',
  'lease-lost': 'lost',
};

/** What viewers are sent: the name of a server-sent event, and its data. */
export type Send = (event: string, data: object) => void;

/**
 * Polls the servers for all viewers: from the arrival of the first one until the last one has left. After each look it
 * pauses at least as long as the look took.
 */
export class Poller {
  readonly #source: BoardSource;
  readonly #interval: number;
  readonly #send: Send;
  readonly #histories = new Histories();
  #rows = new Rows();
  #waits = new Waits();
  #happened: Array<Happening & { readonly at: number }> = [];
  #fresh: Array<Happening & { readonly at: number }> = [];
  #passedOver = 0;
  /** Since the first viewer came, also those that are in no list any more. */
  #counted = NOTHING_COUNTED;
  #health: readonly Finding[] = [];
  #healthAt = Number.NEGATIVE_INFINITY;
  /** The round whose health check is at work. */
  #checking: number | undefined;
  #trouble: { readonly text: string; readonly since: number } | undefined;
  #missing: readonly string[] = [];
  #took = 0;
  #bar = 0;
  #lastLook = Number.NEGATIVE_INFINITY;
  /** The turns of each look since then are in the charts. */
  #watchedSince = 0;
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

  get running(): boolean {
    return this.#unwatch !== undefined;
  }

  start(): void {
    if (this.running) return;
    const round = ++this.#round;
    this.#waits = new Waits();
    this.#happened = [];
    this.#passedOver = 0;
    this.#counted = NOTHING_COUNTED;
    // What was seen before may be old. The charts stay: they are moved to the present by the next look.
    this.#rows = new Rows();
    this.#seenAt = undefined;
    this.#trouble = undefined;
    this.#unwatch =
      this.#source.process?.watch({
        happened: (happening) => this.#note(happening),
        waited: (ms) => this.#waits.note(ms),
      }) ?? (() => {});
    void this.#run(round);
    void this.#lookAtHealth(round);
  }

  stop(): void {
    this.#round++;
    stop(this.#timer);
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#fresh = [];
    this.#healthAt = Number.NEGATIVE_INFINITY;
    this.#source.rest?.();
  }

  /** All that a new viewer needs. */
  everything(): ReadonlyArray<readonly [event: string, data: object]> {
    // Before the first look an empty list would say that there are no keys.
    const known = this.#seenAt === undefined ? [] : [['keys', this.#allKeys()] as const];
    // The next message has those in `#fresh`.
    const happened = this.#happened.filter((one) => !this.#fresh.includes(one));
    const told = { all: true, happened, passedOver: 0, ...this.#counted };
    return [...known, ['status', this.#status()], ['happened', told]];
  }

  /** Looks at once, as after a force release. */
  hurry(): void {
    if (!this.running || this.#timer === undefined) return;
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
      const looking = this.#source.look(this.#histories.keys);
      if ((await within(looking, LOOK_WITHIN)) === OVERDUE && round === this.#round) {
        this.#troubled(`no answer for ${LOOK_WITHIN / 1_000} s`);
        this.#tell();
      }
      const { keys, missing = [] } = await looking;
      if (round !== this.#round) return;
      const bar = barOf(now());
      this.#bar = bar;
      const continuous = now() - this.#lastLook < 2 * Math.max(BAR, this.#interval, 2 * this.#took);
      this.#lastLook = now();
      const isFirst = this.#seenAt === undefined;
      // Turns from before the first look of a round may be in the charts, but with a gap behind them.
      if (isFirst || !continuous) this.#watchedSince = this.#lastLook;
      this.#seenAt = Date.now();
      const callers = this.#source.process?.callers();
      const changes = this.#rows.update(keys, { bar, continuous, callers, histories: this.#histories });
      this.#trouble = undefined;
      this.#missing = missing;
      // Viewers that came before the first look have no charts yet.
      this.#send('keys', isFirst ? this.#allKeys() : { ...changes, bar });
    } catch (error) {
      if (round === this.#round) this.#troubled(brief(error));
    }
  }

  /** With the charts of the last look, and the bar that they end with. */
  #allKeys(): object {
    return { ...this.#rows.all(this.#histories), bar: this.#bar };
  }

  #troubled(text: string): void {
    if (this.#trouble === undefined) {
      // The health check tells which of the servers it is, so it is done now.
      this.#healthAt = Number.NEGATIVE_INFINITY;
    }
    this.#trouble = { text, since: this.#trouble?.since ?? Date.now() };
  }

  #tell(): void {
    const told = { happened: this.#fresh, passedOver: this.#passedOver, ...this.#counted };
    // Before they are sent: a viewer that has caught up is sent `everything` instead, which leaves these out.
    this.#fresh = [];
    this.#passedOver = 0;
    if (told.happened.length > 0) this.#send('happened', told);
    this.#send('status', this.#status());
    const every = this.#health.some(({ status }) => status === 'fault') ? HEALTH_EVERY.ill : HEALTH_EVERY.well;
    if (now() - this.#healthAt >= every) void this.#lookAtHealth(this.#round);
  }

  async #lookAtHealth(round: number): Promise<void> {
    if (this.#checking === round) return;
    this.#checking = round;
    this.#healthAt = now();
    const health = await this.#source.health();
    if (round !== this.#round) return;
    this.#checking = undefined;
    this.#health = health;
    this.#send('status', this.#status());
  }

  #note(happening: Happening): void {
    const told = { at: Date.now(), ...happening };
    this.#happened = [...this.#happened.slice(1 - KEPT), told];
    const name = COUNTED[happening.type];
    if (name !== undefined) this.#counted = { ...this.#counted, [name]: this.#counted[name] + 1 };
    if (this.#fresh.length < MOST_AT_ONCE) this.#fresh.push(told);
    else this.#passedOver++;
  }

  #status(): object {
    return {
      now: Date.now(),
      took: Math.round(this.#took * 10) / 10,
      interval: this.#interval,
      ...(this.#seenAt !== undefined && { seenAt: this.#seenAt }),
      ...(this.#trouble && { trouble: this.#trouble }),
      missing: this.#missing,
      health: this.#health,
      minute: this.#minute(),
      ...this.#postgres(),
      redis: this.#source.topology(),
      ...(this.#source.process && { waits: this.#waits }),
    };
  }

  /** How much of the last minute was watched without a gap, and how many bars, the last ones, it is in. */
  #minute(): object {
    const since = Math.max(this.#watchedSince, (barOf(this.#lastLook) - MINUTE + 1) * BAR);
    const ms = Math.max(0, this.#lastLook - since);
    return this.#seenAt === undefined
      ? { ms: 0, bars: 0 }
      : { ms: Math.round(ms), bars: barOf(this.#lastLook) - barOf(since) + 1 };
  }

  /** Its database, as far as it is known, with the result of the last health check. */
  #postgres(): object {
    const address = this.#source.database();
    if (address === undefined) return {};
    const found = this.#health.find(({ server, check }) => server === 'postgres' && check === 'connection');
    const healthy = found?.status !== 'fault';
    const status = healthy ? 'answers' : 'does not answer';
    return {
      postgres: { address, role: 'database', status: found === undefined ? 'not asked yet' : status, healthy },
    };
  }
}

/** Of a moment by the monotonic clock. */
function barOf(moment: number): number {
  return Math.floor(moment / BAR);
}
