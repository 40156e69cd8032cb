import { randomUUID } from 'node:crypto';
import { Backoff } from '../base/backoff.js';
import { Deadline, now } from '../base/clock.js';
import { LockUnavailableError, type SeenHolder } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import { Lease } from './lease.js';
import type { PollDelay } from './poll-delay.js';
import { PresentHolder } from './present-holder.js';
import type { Releases } from './releases.js';
import type { LeaseRequest } from './request.js';
import { type AcquireResult, type Claim, isDenial, type LeaseStore, NotAsked, type WakeUp } from './store.js';
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
 * How much longer than the longest wait the place in the store's queue is kept, so that new callers seldom have to
 * extend it; milliseconds.
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
  readonly pollDelay: PollDelay;
  readonly releases: Releases;
}

/** Acquires the lease of a key for one process. The only retry loop for leases in this package. */
export class AcquireLoop {
  readonly #key: string;
  readonly #dependencies: AcquireDependencies;
  readonly #line: Line;
  /** Who has the key, and the messages about it. Both are made when they are needed: most first looks take the lease. */
  #present: PresentHolder | undefined;
  #wakeUps: WakeUps | undefined;
  /** The id under which the store knows this process while it waits. */
  #holder = '';
  /** The error of the last look, if it failed. */
  #lookError: unknown;
  /** Why the last lease was taken without the store, if it was. */
  #withoutStore: unknown;
  #failedLooks = 0;
  /** Made at the first failed look or split vote: most calls have none. */
  #backoff: Backoff | undefined;
  /** Whether another process has had the key since this one first asked for it. */
  #isElsewhere = false;
  /** When the look in flight was sent; `Infinity` if none is. */
  #inFlightSince = Number.POSITIVE_INFINITY;
  /** The latest deadline of the callers, and the time until which the place in the store's queue is kept. */
  #longestWait = new Deadline(0);
  #placeDeadline = new Deadline(0);

  constructor(key: string, dependencies: AcquireDependencies, line: Line) {
    this.#key = key;
    this.#dependencies = dependencies;
    this.#line = line;
  }

  /** Why this caller cannot know whether the key is free; `undefined` if it can. */
  failure({ mayShare }: LeaseRequest): unknown {
    // It has waited behind a holder, of another process or of this one. That is why it did not get the key, even if Redis has
    // fallen silent meanwhile.
    const isBehind = this.#present !== undefined || this.#holder === '';
    if (mayShare && this.#dependencies.store.goesOnWithout && isBehind) return undefined;
    if (!mayShare && this.#withoutStore) return this.#withoutStore;
    // A look without an answer for this long may never get one.
    const silentFor = Math.round(now() - this.#inFlightSince);
    return this.#lookError ?? (silentFor > SILENT ? new Error(`there was no answer for ${silentFor} ms`) : undefined);
  }

  /** Awaits an answer to a command that this loop has not sent. Meanwhile `failure` tells of the store's silence. */
  async answered<T>(answer: Promise<T>, sentAt: number): Promise<T> {
    this.#inFlightSince = sentAt;
    try {
      return await answer;
    } finally {
      this.#inFlightSince = Number.POSITIVE_INFINITY;
    }
  }

  /** Whether another process had the key when this one first asked for the lease that it has acquired last. */
  get wasElsewhere(): boolean {
    return this.#isElsewhere;
  }

  /** How many looks in a row have failed, with the one in flight. */
  get failedLooks(): number {
    return this.#failedLooks + (Number.isFinite(this.#inFlightSince) ? 1 : 0);
  }

  /** Who had the key, by the last answer or message. */
  seen(): SeenHolder | undefined {
    return this.#present?.seen;
  }

  /** Whether the next look gives this caller its turn, though the store cannot be reached. */
  canGoOnWithout({ mayShare }: LeaseRequest): boolean {
    return mayShare && this.#withoutStore !== undefined;
  }

  /** Called for each new caller, which waits until its deadline. */
  keepPlace(request: LeaseRequest): void {
    const { deadline } = request;
    // The loop may sleep until its next look at the store, and this caller can do without the store.
    if (this.canGoOnWithout(request)) this.#wakeUps?.wake();
    if (deadline.remaining <= this.#longestWait.remaining) return;
    this.#longestWait = deadline;
    if (this.listens && deadline.remaining > this.#placeDeadline.remaining) this.#wakeUps?.wake();
  }

  /** Called when all callers have given up. */
  stop(): void {
    this.#wakeUps?.wake();
  }

  /** Whether this process is subscribed to the key's channel. */
  get listens(): boolean {
    return this.#wakeUps?.listens === true;
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
  async acquire(): Promise<Lease | undefined> {
    this.#holder = randomUUID();
    this.#wakeUps?.beginLook();
    this.#failedLooks = 0;
    this.#isElsewhere = false;
    this.#backoff = undefined;
    // Whether the store may have this process in its queue, or may have granted the lease in a lost reply.
    let isKnownToStore = false;
    let leaseTime = 0;
    for (let looks = 0; ; looks++) {
      const first = this.#line.first();
      if (first === undefined) break;
      if (looks > 0 && this.#dependencies.store.newHolderPerLook) this.#holder = randomUUID();
      const { deadline, options, preopen } = first.request;
      leaseTime = options.leaseTime;
      if (looks === 0 && this.#dependencies.listenFirst && !deadline.passed) {
        first.startWaiting();
        await this.answered(this.#ensureWakeUps().listen(), now());
        // It may have taken long, and a look for nobody would hold up the end of the client.
        if (this.#line.first() === undefined) break;
      }
      const claim = { key: this.#key, holder: this.#holder, leaseTime };
      const offeredFor = this.#wakeUps?.beginLook() ?? 0;
      if (offeredFor > 0 && preopen?.isAdmitted && options.renew) {
        this.#present = undefined;
        this.#noteAnswer();
        return this.#acquired(Lease.offered(claim, offeredFor));
      }
      // The offer may have expired, so the look decides. It seldom refuses an offer, so the transaction may begin beside
      // it.
      if (offeredFor > 0) first.preopen('look');
      const sentAt = now();
      this.#inFlightSince = sentAt;
      let nextLook: number;
      try {
        const answer = await this.#look(claim, looks === 0 ? deadline : undefined);
        this.#noteAnswer(answer.taken ? answer.shared : undefined);
        if (answer.taken) {
          const lease = this.#onTaken(answer, claim, first, sentAt);
          if (lease.loss === undefined) return this.#acquired(lease);
          // The reply came after the lease had expired. The store may still show this holder.
          this.#lookError = lease.loss;
          nextLook = 0;
        } else {
          nextLook = this.#onDenied(answer);
        }
      } catch (error) {
        nextLook = this.#onFailed(error, first);
      } finally {
        this.#inFlightSince = Number.POSITIVE_INFINITY;
      }
      const isInDoubt = this.#lookError !== undefined && !(this.#lookError instanceof NotAsked);
      isKnownToStore ||= isInDoubt || this.listens;
      // A caller waits only from here: its first look was made at once.
      first.startWaiting();
      this.#line.first(true)?.ensureWaiting();
      if (this.#line.first() === undefined) break;
      const wakeUps = this.#ensureWakeUps();
      if (!wakeUps.listens && this.#lookError === undefined) {
        if (await wakeUps.listen()) continue;
        nextLook = Math.min(nextLook, this.#dependencies.pollDelay());
      }
      if (wakeUps.isDeaf) nextLook = Math.min(nextLook, this.#dependencies.pollDelay());
      await wakeUps.sleep(nextLook);
    }
    // All callers have given up.
    if (isKnownToStore) this.#dependencies.releases.send({ key: this.#key, holder: this.#holder, leaseTime });
    this.#holder = '';
    return undefined;
  }

  /** There is an answer. @param withoutStore why the lease was taken without the store, if it was. */
  #noteAnswer(withoutStore?: Error): void {
    this.#lookError = undefined;
    this.#failedLooks = 0;
    this.#withoutStore = withoutStore;
  }

  /** Nobody waits any more: a hint or an offer that comes late is for nobody. */
  #acquired(lease: Lease): Lease {
    this.#holder = '';
    return lease;
  }

  /** The store has given the key to this process. @throws the store's error if no caller can go on without the store. */
  #onTaken({ shared, contended }: Taken, claim: Claim, first: Waiter, sentAt: number): Lease {
    this.#present = undefined;
    // A handle at the head of the queue waits for the store, and those behind it need not.
    const user = shared ? this.#line.first(true) : first;
    if (user === undefined) {
      this.#dependencies.releases.send(claim);
      // Use a new id: the release of the old one may be sent again later, and must not release a new lease.
      this.#holder = randomUUID();
      throw shared;
    }
    if (user !== first) first.startWaiting();
    // The process that this one has waited for is likely to want the key again.
    const isWanted = contended !== false || this.#isElsewhere;
    const { leaseTime } = user.request.options;
    return new Lease({ ...claim, leaseTime }, sentAt, { shared: shared !== undefined, isWanted });
  }

  /** Another process has the key. Returns when to look again; milliseconds. */
  #onDenied(answer: Denial): number {
    this.#present ??= new PresentHolder();
    this.#present.answered(answer);
    this.#isElsewhere ||= answer.split !== true;
    if (answer.holder) this.#dependencies.releases.sendAgain(answer.holder);
    // Add one millisecond, because the store rounds down and a look that is too early would only be repeated.
    const nextLook = (answer.lookIn ?? answer.expiresIn) + 1;
    if (answer.split) return Math.min(nextLook, Math.random() * this.#nextPause());
    this.#backoff?.reset();
    return nextLook;
  }

  /** The look has failed. Returns when to look again; milliseconds. */
  #onFailed(error: unknown, first: Waiter): number {
    this.#dependencies.emit({ type: 'look-failed', key: this.#key, error });
    this.#lookError = error;
    this.#failedLooks++;
    const pause = this.#nextPause();
    if (!isDenial(error)) return pause;
    // Refuse one caller only and ask again for the next: the cause may have been repaired by then.
    if (this.#line.first() === first) first.turnAway(new LockUnavailableError(this.#key, error));
    return 0;
  }

  #nextPause(): number {
    this.#backoff ??= new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
    return this.#backoff.next();
  }

  #look(claim: Claim, deadline: Deadline | undefined): Promise<AcquireResult> {
    const look = deadline && { atMost: Math.max(LEAST_LOOK, deadline.remaining) };
    // Enter the store's queue only when subscribed: a release skips processes without a subscriber.
    if (!this.listens) return this.#dependencies.store.acquire(claim, look);
    this.#placeDeadline = new Deadline(this.#longestWait.remaining + SPARE_TIME);
    return this.#dependencies.store.acquire(claim, { ...look, enter: this.#placeDeadline.remaining });
  }

  #ensureWakeUps(): WakeUps {
    this.#wakeUps ??= new WakeUps(
      this.#dependencies.store,
      this.#key,
      () => this.#holder,
      (wakeUp) => this.#onWakeUp(wakeUp),
    );
    return this.#wakeUps;
  }

  #onWakeUp(wakeUp: WakeUp): void {
    if (wakeUp === 'look' || 'turn' in wakeUp) {
      this.#present ??= new PresentHolder();
      this.#present.heard(wakeUp);
    } else if (wakeUp.next === this.#holder) {
      this.#line.first()?.preopen('commit');
    }
  }
}
