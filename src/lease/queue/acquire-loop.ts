import { randomUUID } from 'node:crypto';
import { Deadline, now } from '../../base/clock.js';
import { LockUnavailableError, type SeenHolder } from '../../base/errors.js';
import type { Emit } from '../../base/events.js';
import { Lease } from '../lease.js';
import {
  type AcquireResult,
  type Claim,
  isDenial,
  type LeaseStore,
  NotAsked,
  type WakeUp,
  type Watch,
} from '../store.js';
import type { PollDelay } from './poll-delay.js';
import { PresentHolder } from './present-holder.js';
import type { Waiter } from './waiter.js';
import { WakeableSleep } from './wakeable-sleep.js';

/** First pause after a store that gave no answer, or votes that were split; it doubles up to the longest. */
const FIRST_PAUSE = 25;
const LONGEST_PAUSE = 500;
/** The first look gets what is left of the wait time, and at least so much that a healthy network answers; ms. */
const LEAST_LOOK = 250;
/** How long offers to others may put off the next look. */
const LONGEST_REST = 2_000;
/** A place in the queue is kept for so long beyond the longest wait, so that a new caller seldom has to ask for more. */
const SPARE_TIME = 60_000;

/** What contending for a key takes. */
export interface AcquireDependencies {
  readonly store: LeaseStore;
  readonly emit: Emit;
  /** Whether a place in the queue is to be had by the very first look. */
  readonly listenFirst: boolean;
  readonly rest: PollDelay;
  /** Sends the release; nobody waits for it. */
  release(claim: Claim): void;
  /** The store has given the key to somebody else. */
  rememberPassedOn(claim: Claim): void;
  /** The store says that this holder has the key, though it may have given it back. */
  releaseAgain(holder: string): void;
}

/** The way of one process to the lease of a key: the only loop in this package that tries again for one. */
export class AcquireLoop {
  readonly #key: string;
  readonly #means: AcquireDependencies;
  readonly #first: () => Waiter | undefined;
  readonly #sleep = new WakeableSleep();
  readonly #present = new PresentHolder();
  #watch: Watch | undefined;
  /** Under what name the store knows us at the moment. */
  #holder = '';
  /** Whether we have heard that the key is kept for us. */
  #offered = false;
  /** Why the last look had no answer. */
  #trouble: unknown;
  /** When the last look was sent. */
  #lookedAt = 0;
  /** Since when a look is under way. */
  #askedAt = Number.POSITIVE_INFINITY;
  /** The last of the callers' deadlines, and until when our place in the queue is kept. */
  #longest = new Deadline(0);
  #kept = new Deadline(0);

  /** `first`: who would have the lease next; `undefined` when everybody has given up. */
  constructor(key: string, means: AcquireDependencies, first: () => Waiter | undefined) {
    this.#key = key;
    this.#means = means;
    this.#first = first;
  }

  /** Why nobody can say whether the key is free, or `undefined`. */
  trouble(): unknown {
    // A look that has had no answer for so long may never get one.
    const silentFor = Math.round(now() - this.#askedAt);
    return this.#trouble ?? (silentFor > LEAST_LOOK ? new Error(`there was no answer for ${silentFor} ms`) : undefined);
  }

  /** Who had the key when that was last heard of. */
  seen(): SeenHolder | undefined {
    return this.#present.seen;
  }

  /** A caller will wait until then. */
  keepPlace(deadline: Deadline): void {
    if (deadline.remaining <= this.#longest.remaining) return;
    this.#longest = deadline;
    if (this.#watch && deadline.remaining > this.#kept.remaining) this.#sleep.wake();
  }

  /** Everybody has given up. */
  stop(): void {
    this.#sleep.wake();
  }

  /** Whether wake-ups of the key come here. */
  get listens(): boolean {
    return this.#watch !== undefined;
  }

  unsubscribe(): void {
    this.#watch?.close();
    this.#watch = undefined;
  }

  /**
   * Look, subscribe and have that confirmed, look again and take a place in the queue, sleep. Whatever was released
   * before the second look is seen by it; whatever is released after it sends a message. One that is lost costs time.
   * Resolves to `undefined` when everybody has given up.
   */
  async acquire(): Promise<Lease | undefined> {
    this.#holder = randomUUID();
    this.#offered = false;
    let known = false;
    let isElsewhere = false;
    let leaseTime = 0;
    let pause = FIRST_PAUSE;
    for (let looks = 0; ; looks++) {
      const first = this.#first();
      if (first === undefined) break;
      const { deadline } = first.request;
      leaseTime = first.request.leaseTime;
      if (looks === 0 && this.#means.listenFirst && !deadline.passed) {
        first.startWaiting();
        this.#askedAt = now();
        await this.#listen();
      }
      const claim = { key: this.#key, holder: this.#holder, leaseTime };
      this.#sleep.reset();
      // The message may be old, so the look decides. What its answer is seldom against need not wait for it.
      if (this.#offered) first.preopen('look');
      this.#offered = false;
      const sentAt = now();
      this.#askedAt = sentAt;
      this.#lookedAt = sentAt;
      let nextLook: number;
      try {
        const answer = await this.#look(claim, looks === 0 ? deadline : undefined);
        this.#trouble = undefined;
        this.#present.answered(answer);
        if (answer.taken) {
          const lease = new Lease(claim, sentAt, answer.shared !== undefined);
          lease.contended = answer.contended !== false;
          lease.waitedFor = isElsewhere;
          if (answer.shared && !first.request.mayShare) {
            this.#means.release(claim);
            // Its release may be sent again, for as long as that matters: it is nobody's name any more.
            this.#holder = randomUUID();
            throw answer.shared;
          }
          if (lease.loss === undefined) return lease;
          // It came so late that it has ended already. The store may still think that we have it.
          this.#trouble = lease.loss;
          nextLook = 0;
        } else {
          isElsewhere ||= answer.split !== true;
          if (answer.holder) this.#means.releaseAgain(answer.holder);
          // One more, because the store rounds down: looking a moment early would only repeat the look.
          nextLook = (answer.lookIn ?? answer.expiresIn) + 1;
          if (answer.split) nextLook = Math.min(nextLook, Math.random() * pause);
          pause = answer.split ? Math.min(pause * 2, LONGEST_PAUSE) : FIRST_PAUSE;
        }
      } catch (error) {
        this.#means.emit({ type: 'look-failed', key: this.#key, error });
        this.#trouble = error;
        nextLook = pause;
        pause = Math.min(pause * 2, LONGEST_PAUSE);
        if (isDenial(error)) {
          // The next caller asks for itself: by then somebody may have mended it.
          nextLook = 0;
          if (this.#first() === first) first.turnAway(new LockUnavailableError(this.#key, error));
        }
      } finally {
        this.#askedAt = Number.POSITIVE_INFINITY;
      }
      const asked = this.#trouble !== undefined && !(this.#trouble instanceof NotAsked);
      known ||= asked || this.#watch !== undefined;
      // Who came first looked at once, and only now has to wait.
      first.startWaiting();
      if (this.#first() === undefined) break;
      if (this.#watch === undefined && this.#trouble === undefined) {
        if (await this.#listen()) continue;
        nextLook = Math.min(nextLook, this.#means.rest());
      }
      if (this.#watch?.hears === false) nextLook = Math.min(nextLook, this.#means.rest());
      await this.#sleep.sleep(nextLook);
    }
    // Everybody has given up. The store may have us in its queue, or have given us the lease without our knowing.
    if (known) this.#means.release({ key: this.#key, holder: this.#holder, leaseTime });
    return undefined;
  }

  #look(claim: Claim, deadline: Deadline | undefined): Promise<AcquireResult> {
    const atMost = deadline === undefined ? {} : { atMost: Math.max(LEAST_LOOK, deadline.remaining) };
    // Who is not heard of has no place: it would be passed over as one that has ended.
    if (this.#watch === undefined) return this.#means.store.acquire(claim, atMost);
    this.#kept = new Deadline(this.#longest.remaining + SPARE_TIME);
    return this.#means.store.acquire(claim, { ...atMost, enter: this.#kept.remaining });
  }

  async #listen(): Promise<boolean> {
    try {
      this.#watch = await this.#means.store.watch(this.#key, (wakeUp) => this.#onWakeUp(wakeUp));
      return true;
    } catch {
      // The store tells of it, once: here each try would, of each key.
      return false;
    }
  }

  #onWakeUp(wakeUp: WakeUp): void {
    if (wakeUp !== 'look' && 'next' in wakeUp) {
      if (wakeUp.next === this.#holder) this.#first()?.preopen('commit');
      return;
    }
    this.#present.heard(wakeUp);
    if (wakeUp !== 'look') this.#offered = wakeUp.turn === this.#holder;
    if (wakeUp === 'look' || this.#offered) this.#sleep.wake();
    // Somebody else's turn. If that one does not come for it, the key is free then, and nobody says so. On a busy key
    // the next offer comes before, and the next: a place that was lost with the queue would never be asked for again.
    else this.#sleep.wakeIn(Math.min(wakeUp.expiresIn + 1, Math.max(1, this.#lookedAt + LONGEST_REST - now())));
  }
}
