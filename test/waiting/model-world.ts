import type { Redis } from 'ioredis';
import { now } from '../../src/base/clock.js';
import type { Lease } from '../../src/waiting/lease.js';
import type { Preopen, PreopenMoment, Turn } from '../../src/waiting/turn.js';
import type { FaultProxy } from '../support/fault-proxy.js';
import { Actor, type ActorOptions, FOR_EVER, holderOf, someKey } from './actors.js';

/** What a run is made of; `slot`: which of the processes. */
export type Step =
  | { readonly do: 'acquire'; readonly slot: number; readonly waitTime: number; readonly renew: boolean }
  | { readonly do: 'give up' | 'release' | 'crash' | 'freeze' | 'thaw'; readonly slot: number }
  | { readonly do: 'lose messages' | 'flush' }
  | { readonly do: 'pause'; readonly ms: number };

/** One process: what it has and what it waits for. */
interface Process {
  readonly actor: Actor;
  readonly waiting: Set<AbortController>;
  readonly turns: Set<Turn>;
}

/** A lease that is not renewed: it ends while somebody works under it. */
const SHORT_LEASE = 200;
/** For how long a key is kept for the one whose turn it is, and what a busy machine adds to that. */
const OFFER = 1_000;
const SLACK = 400;
/** So long nobody waits where nobody fails. */
const SOON = 8_000;

/** Some processes around one key, and what has to hold whatever happens to them. */
export class World {
  readonly ends = { served: 0, 'gave up': 0, failed: 0 };
  readonly #key = someKey();
  readonly #admin: Redis;
  readonly #proxies: readonly FaultProxy[];
  readonly #options: Omit<ActorOptions, 'url'>;
  readonly #url: string;
  readonly #leaseTime: number;
  readonly #processes: Process[];
  /** Those of crashed processes, too. */
  readonly #actors: Actor[] = [];
  /** Those of crashed processes stay until their lease has ended. */
  readonly #turns = new Set<Turn>();
  /** Redis knows nothing of what it was asked before. */
  #flushedAt = 0;
  #calls: Array<{ process: Process; ended: Promise<void> }> = [];
  /** Whose turns end at once. */
  #calm: (process: Process) => boolean = () => false;
  readonly #frozen = new Set<number>();

  constructor(
    admin: Redis,
    url: string,
    proxies: readonly FaultProxy[],
    leaseTime: number,
    options: Pick<ActorOptions, 'fairness' | 'passOnAfter'>,
  ) {
    this.#admin = admin;
    this.#url = url;
    this.#proxies = proxies;
    this.#leaseTime = leaseTime;
    this.#options = { ...options, commandTimeout: 500 };
    this.#processes = proxies.map((proxy) => this.#start(proxy));
  }

  #start(proxy: FaultProxy): Process {
    const actor = new Actor({ ...this.#options, url: proxy.url(this.#url) });
    this.#actors.push(actor);
    return { actor, waiting: new Set(), turns: new Set() };
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'acquire':
        return this.#acquire(this.#process(step.slot), step.waitTime, step.renew);
      case 'give up':
        return [...this.#process(step.slot).waiting][0]?.abort('enough');
      case 'release':
        return this.#leave(this.#process(step.slot), [...this.#process(step.slot).turns][0]);
      case 'crash':
        return await this.#crash(step.slot);
      case 'freeze':
        this.#frozen.add(step.slot);
        return this.#proxies[step.slot]?.silence();
      case 'thaw':
        this.#frozen.delete(step.slot);
        return this.#proxies[step.slot]?.resume();
      case 'lose messages':
        await this.#admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
        return;
      case 'flush':
        // Its answer can come behind that of somebody who took the key after it.
        this.#flushedAt = Number.POSITIVE_INFINITY;
        await this.#admin.flushall();
        this.#flushedAt = now();
        return;
      case 'pause':
        return await pause(step.ms);
    }
  }

  /** Nothing more goes wrong: whoever is not frozen gets on, as long as no frozen one has the key. */
  async leaveFrozen(): Promise<void> {
    const isLive = (process: Process) => !this.#frozen.has(this.#processes.indexOf(process));
    this.#calm = isLive;
    await this.#settle(isLive, true);
  }

  /** Everybody comes back: everybody is served or gives up. */
  async calmDown(): Promise<void> {
    this.#calm = () => true;
    for (const proxy of this.#proxies) proxy.resume();
    await this.#settle(() => true, false);
    await Promise.all(this.#processes.map(({ actor }) => actor.room.close()));
  }

  /** Nobody of these sleeps beside a free key for longer than an offer. */
  async #settle(isLive: (process: Process) => boolean, mayBeKept: boolean): Promise<void> {
    const live = this.#processes.filter(isLive);
    for (const process of live) for (const turn of [...process.turns]) this.#leave(process, turn);
    let over = false;
    const all = Promise.all(this.#calls.filter(({ process }) => live.includes(process)).map(({ ended }) => ended));
    const settled = all.then(() => {
      over = true;
    });
    const from = now();
    let changedAt = now();
    let holder: string | null = null;
    while (!over) {
      const present = await holderOf(this.#admin, this.#key);
      if (present !== holder) changedAt = now();
      holder = present;
      const tooLong = now() - changedAt > OFFER + SLACK;
      // A holder that is frozen does not find out that its lease was flushed, so those who wait for it sleep on until it
      // would have ended, as after a crash.
      const unnoticed = mayBeKept && this.#flushedAt > 0 && this.#frozen.size > 0;
      if (tooLong && holder === null && !unnoticed)
        throw new Error(`somebody sleeps beside a free key: ${this.#state()}`);
      if (tooLong && mayBeKept) return;
      if (now() - from > SOON) throw new Error(`somebody was not served: ${this.#state()}`);
      await Promise.race([settled, pause(10)]);
    }
  }

  async end(): Promise<void> {
    for (const { actor } of this.#processes) await actor.close();
  }

  #process(slot: number): Process {
    return this.#processes[slot] as Process;
  }

  #acquire(process: Process, waitTime: number, renew: boolean): void {
    const caller = new AbortController();
    process.waiting.add(caller);
    const wanted = process.actor.acquire(this.#key, {
      leaseTime: renew ? this.#leaseTime : SHORT_LEASE,
      renew,
      waitTime: waitTime === 0 ? FOR_EVER : waitTime,
      signal: caller.signal,
      preopen: new Admitted(),
    });
    const ended = wanted.then(
      (turn) => this.#begin(process, turn),
      (error: unknown) => {
        const code = (error as { code?: string }).code;
        this.ends[error === 'enough' || code === 'LOCK_TIMEOUT' ? 'gave up' : 'failed']++;
      },
    );
    const call = { process, ended: ended.finally(() => process.waiting.delete(caller)) };
    // It is awaited in the end, and what it found out early must not end the test run before.
    call.ended.catch(() => {});
    this.#calls.push(call);
  }

  #begin(process: Process, turn: Turn): void {
    this.ends.served++;
    if (!this.#processes.includes(process)) return;
    this.#turns.add(turn);
    const rightful = [...this.#turns].filter(({ lease }) => lease.loss === undefined && this.#isKnown(lease));
    if (rightful.length > 1) {
      throw new Error(`${rightful.length} have the key: ${rightful.map(({ lease }) => lease.holder)}`);
    }
    process.turns.add(turn);
    if (this.#calm(process)) this.#leave(process, turn);
  }

  #leave(process: Process, turn: Turn | undefined): void {
    if (turn === undefined) return;
    process.turns.delete(turn);
    this.#turns.delete(turn);
    turn.hint();
    turn.end();
  }

  /**
   * Whether the store has given it, or extended it, and was asked after the last FLUSHALL. An offer may be over when it is
   * read: until the first renewal, Postgres keeps the others waiting.
   */
  #isKnown(lease: Lease): boolean {
    const isGiven = this.#actors.some(({ store }) => store.hasGivenTo(lease.holder));
    return isGiven && now() - lease.age > this.#flushedAt;
  }

  async #crash(slot: number): Promise<void> {
    const proxy = this.#proxies[slot] as FaultProxy;
    const { actor } = this.#process(slot);
    this.#processes[slot] = this.#start(proxy);
    // Nothing that it says from now on is heard by anybody.
    actor.redis.disconnect();
    await actor.close();
  }

  #state(): string {
    const waiting = this.#processes.map(({ actor, turns }) => [
      actor.room.waitingByKey().get(this.#key),
      turns.size,
      actor.events,
    ]);
    return JSON.stringify(waiting);
  }
}

/** A transaction that begins at a hint and is admitted a little later, as by a Postgres that is always there. */
class Admitted implements Preopen {
  #opening: Promise<void> | undefined;
  isAdmitted = false;

  open(beside: PreopenMoment): void {
    if (beside === 'look' || this.#opening !== undefined) return;
    const opening = pause(1).then(() => {
      if (this.#opening === opening) this.isAdmitted = true;
    });
    this.#opening = opening;
  }

  wait(): void {}

  discard(): void {
    this.isAdmitted = false;
    this.#opening = undefined;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
