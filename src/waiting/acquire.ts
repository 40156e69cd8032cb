import { randomUUID } from 'node:crypto';
import { Backoff } from '../base/backoff.js';
import { now } from '../base/clock.js';
import { LockUnavailableError, type SeenHolder } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import type { LockVia } from '../base/messages.js';
import { Lease } from './lease.js';
import type { Releases } from './releases.js';
import { type AcquireResult, type Claim, isDenial, type LeaseStore, NotAsked } from './store.js';
import type { Line, Waiter } from './waiter.js';
import { WakeUps } from './wake-ups.js';

/** First and longest pause after a failed look or split votes of a quorum; milliseconds. */
const FIRST_PAUSE = 25;
const LONGEST_PAUSE = 500;
/**
 * Time limit of the first look if less wait time is left; milliseconds. A process that has just started makes its
 * connection within it, with TLS, on a machine that is busy.
 */
const LEAST_LOOK = 1_000;
/** How long a look has no answer until Redis counts as silent; milliseconds. */
const SILENT = 250;
/**
 * How much longer than the first caller waits the place in the store's queue is kept. A look extends it, and is made before it
 * ends; milliseconds.
 */
const SPARE_TIME = 60_000;

type Taken = Extract<AcquireResult, { readonly taken: true }>;
type Denial = Extract<AcquireResult, { readonly taken: false }>;

/** What the loop needs to acquire a lease. */
export interface AcquireDependencies {
  readonly store: LeaseStore;
  readonly emit: Emit;
  /** Whether to subscribe before the first look, so that the first look can already enter the store's queue. */
  readonly listenFirst: boolean;
  /** The time until the next look if wake-ups do not arrive; milliseconds. */
  readonly pollDelay: () => number;
  readonly releases: Releases;
}

/** Acquires the lease of a key for one process. The only retry loop for leases in this package. */
export class AcquireLoop {
  readonly #key: string;
  readonly #dependencies: AcquireDependencies;
  readonly #line: Line;
  /** Made when it is needed: most first looks take the lease. */
  #wakeUps: WakeUps | undefined;
  /** Who has the key, by the last look; `since`: when this process first saw that holder. */
  #present: (Denial & { readonly since: number; readonly expiresAt: number }) | undefined;
  /** The id under which the store knows this process while it waits. */
  #holder = '';
  /** The error of the last look, if it failed. */
  #lookError: unknown;
  /** Made at the first failed look or split vote: most calls have none. */
  #backoff: Backoff | undefined;
  /** Whether another process has had the key since this one first asked for it. */
  #wasElsewhere = false;
  /** When the look in flight was sent; `Infinity` if none is. */
  #inFlightSince = Number.POSITIVE_INFINITY;

  constructor(key: string, dependencies: AcquireDependencies, line: Line) {
    this.#key = key;
    this.#dependencies = dependencies;
    this.#line = line;
  }

  /** Why the callers cannot know whether the key is free; `undefined` if they can. */
  get failure(): unknown {
    // They have waited behind a holder, of another process or of this one. That is why they did not get the key, even if Redis
    // has fallen silent meanwhile.
    const isBehind = this.#present !== undefined || this.#holder === '';
    if (this.#dependencies.store.goesOnWithout && isBehind) return undefined;
    // A look without an answer for this long may never get one.
    const silentFor = Math.round(now() - this.#inFlightSince);
    return this.#lookError ?? (silentFor > SILENT ? new Error(`there was no answer for ${silentFor} ms`) : undefined);
  }

  /** Who had the key, by the last answer. */
  get seen(): SeenHolder | undefined {
    if (!this.#present?.holder) return undefined;
    const { process, since, expiresAt } = this.#present;
    return { process, here: false, heldFor: now() - since, expiresIn: Math.max(0, expiresAt - now()) };
  }

  /** Awaits an answer to a command that is not a look. Meanwhile `failure` tells of the store's silence. */
  async answered<T>(answer: Promise<T>, sentAt: number): Promise<T> {
    this.#inFlightSince = sentAt;
    try {
      return await answer;
    } finally {
      this.#inFlightSince = Number.POSITIVE_INFINITY;
    }
  }

  /** Called when all callers have given up. */
  stop(): void {
    this.#wakeUps?.wakeIn(0);
  }

  unsubscribe(): void {
    this.#wakeUps?.unsubscribe();
  }

  /**
   * Looks, subscribes and waits for the confirmation, looks again and enters the store's queue, then sleeps. The second
   * look sees every earlier release, and every later release sends a message. A lost message costs time only.
   *
   * A hint makes it shorter: the caller opens its transaction, whose admission waits for the COMMIT of the holder before it.
   * If Postgres has admitted it when the offer comes, its work begins with that message: an offer is a lease for a second,
   * and a renewal extends it at once. The message may be old, as behind a pause of the process. Then no later holder's
   * transaction has begun, because this one has the key's row, or Postgres has ended this one; and the renewal finds the
   * lease gone.
   *
   * Resolves to `undefined` when all callers have given up.
   */
  async acquire(): Promise<{ readonly lease: Lease; readonly via: LockVia } | undefined> {
    this.#holder = randomUUID();
    this.#wasElsewhere = false;
    this.#backoff = undefined;
    // Whether the store may have this process in its queue, or may have granted the lease in a lost reply.
    let isKnownToStore = false;
    let leaseTime = 0;
    for (let isFirst = true; ; isFirst = false) {
      const { first } = this.#line;
      if (first === undefined) break;
      leaseTime = first.request.options.leaseTime;
      if (isFirst && this.#dependencies.listenFirst && !first.request.deadline.passed) {
        first.startWaiting();
        await this.answered(this.#ensureWakeUps().listen(), now());
        // It may have taken long, and a look for nobody would hold up the end of the client.
        if (this.#line.first === undefined) break;
      }
      if (!isFirst && this.#dependencies.store.newHolderPerLook) this.#holder = randomUUID();
      const found = await this.#look(first, isFirst);
      if (found instanceof Lease) {
        this.#holder = '';
        this.#wakeUps?.rest();
        return { lease: found, via: this.#wasElsewhere ? 'redis' : 'free' };
      }
      const isInDoubt = this.#lookError !== undefined && !(this.#lookError instanceof NotAsked);
      isKnownToStore ||= isInDoubt || this.#wakeUps?.listens === true;
      // A caller waits only from here: its first look was made at once.
      first.startWaiting();
      if (this.#line.first === undefined) break;
      await this.#untilNextLook(found);
    }
    // All callers have given up.
    if (isKnownToStore) this.#dependencies.releases.send({ key: this.#key, holder: this.#holder, leaseTime });
    this.#holder = '';
    this.#wakeUps?.rest();
    return undefined;
  }

  /** Resolves to the lease, or to when to look again; milliseconds. */
  async #look(first: Waiter, isFirst: boolean): Promise<Lease | number> {
    const { deadline, options, preopen } = first.request;
    const claim = { key: this.#key, holder: this.#holder, leaseTime: options.leaseTime };
    const offeredFor = this.#wakeUps?.beginLook(this.#holder) ?? 0;
    if (offeredFor > 0 && preopen?.isAdmitted && options.renew) {
      this.#noteAnswer();
      return new Lease(claim, now(), { offeredFor });
    }
    // The offer may have expired, so the look decides. It seldom refuses an offer, so the transaction may begin beside it.
    if (offeredFor > 0) first.preopen('look');
    // Enter the store's queue only when subscribed: a release skips processes without a subscriber.
    const enter = this.#wakeUps?.listens ? deadline.remaining + SPARE_TIME : undefined;
    const atMost = isFirst ? Math.max(LEAST_LOOK, deadline.remaining) : undefined;
    const sentAt = now();
    this.#inFlightSince = sentAt;
    try {
      const answer = await this.#dependencies.store.acquire(claim, { enter, atMost });
      if (answer.taken) return this.#onTaken(answer, claim, first, sentAt);
      const nextLook = this.#onDenied(answer);
      return enter === undefined ? nextLook : Math.min(nextLook, enter);
    } catch (error) {
      return this.#onFailed(error, first);
    } finally {
      this.#inFlightSince = Number.POSITIVE_INFINITY;
    }
  }

  /** The store has given the key to this process. */
  #onTaken({ shared, contended, key }: Taken, claim: Claim, first: Waiter, sentAt: number): Lease | number {
    this.#noteAnswer();
    if (shared && !first.request.preopen) {
      this.#dependencies.releases.send(claim);
      // Use a new id: the release of the old one may be sent again later, and must not release a new lease.
      this.#holder = randomUUID();
      return this.#refuse(first, shared);
    }
    // The process that this one has waited for is likely to want the key again.
    const isWanted = contended !== false || this.#wasElsewhere;
    const lease = new Lease(key === undefined ? claim : { ...claim, key }, sentAt, {
      renew: first.request.options.renew,
      shared: shared !== undefined,
      isWanted,
    });
    if (lease.loss === undefined) return lease;
    // The reply came after the lease had expired. The store may still show this holder.
    this.#lookError = lease.loss;
    return 0;
  }

  /** Another process has the key. */
  #onDenied(answer: Denial): number {
    const isSame = answer.holder !== undefined && answer.holder === this.#present?.holder;
    const since = isSame && this.#present ? this.#present.since : now();
    this.#noteAnswer();
    this.#present = { ...answer, since, expiresAt: now() + answer.expiresIn };
    this.#wasElsewhere ||= answer.split !== true;
    // Add one millisecond, because the store rounds down and a look that is too early would only be repeated.
    const nextLook = (answer.lookIn ?? answer.expiresIn) + 1;
    if (answer.split) return Math.min(nextLook, Math.random() * this.#nextPause());
    this.#backoff?.reset();
    return nextLook;
  }

  #onFailed(error: unknown, first: Waiter): number {
    this.#dependencies.emit({ type: 'look-failed', key: this.#key, error });
    this.#lookError = error;
    const pause = this.#nextPause();
    // Refuse one caller only and ask again for the next: the cause may have been repaired by then.
    return isDenial(error) ? this.#refuse(first, error) : pause;
  }

  #noteAnswer(): void {
    this.#present = undefined;
    this.#lookError = undefined;
  }

  #refuse(waiter: Waiter, cause: unknown): number {
    if (this.#line.first === waiter) waiter.turnAway(new LockUnavailableError(this.#key, cause));
    return 0;
  }

  async #untilNextLook(ms: number): Promise<void> {
    const wakeUps = this.#ensureWakeUps();
    if (!wakeUps.listens && this.#lookError === undefined && (await wakeUps.listen())) return;
    // After a failed look, the pause is longer if it failed before.
    const polls = !wakeUps.hears && (wakeUps.listens || this.#lookError === undefined);
    await wakeUps.sleep(polls ? Math.min(ms, this.#dependencies.pollDelay()) : ms);
  }

  #nextPause(): number {
    this.#backoff ??= new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
    return this.#backoff.next();
  }

  #ensureWakeUps(): WakeUps {
    this.#wakeUps ??= new WakeUps(this.#dependencies.store, this.#key, () => this.#line.first?.preopen('commit'));
    return this.#wakeUps;
  }
}
