import { type Deadline, now, sleep } from '../../base/clock.js';
import { ClosedError, LockLostError, LockUnavailableError } from '../../base/errors.js';
import type { Emit } from '../../base/events.js';
import { Recent } from '../../base/recent.js';
import { Lease } from '../lease.js';
import { Releases } from '../releases.js';
import type { Renewal } from '../renewal.js';
import { type Claim, isDenial, type LeaseStore } from '../store.js';
import { LocalQueue, type QueueDependencies } from './local-queue.js';
import { fixed, type PollDelay } from './poll-delay.js';
import type { LeaseRequest } from './request.js';
import type { Turn } from './turn.js';

/** Between two tries at taking a lease over. */
const TRANSFER_PAUSE = 50;
/** Between two looks while the wake-ups that there should be cannot be heard. */
const DEAF_REST = 250;

/** For how long a key that was waited for counts as busy; ms. */
const BUSY_TIME = 1_000;
/** Within which somebody who comes for a key again does so at once: one caller after the other; ms. */
const RETURN_TIME = 1;
const MOST_KEYS = 1_000;

export interface WaitingRoomOptions {
  /** `process`: the callers of a process share its place in the queue. `strict`: each has one of its own. */
  readonly fairness: 'process' | 'strict';
  readonly maxLocalHandovers: number;
  /** What others are told of this process. */
  readonly name?: string;
  /** How often to look while wake-ups cannot be heard. Default: every 250 ms. */
  readonly rest?: PollDelay;
}

/** Where the callers of one client wait, key by key. */
export class WaitingRoom {
  readonly #shared: QueueDependencies;
  readonly #strict: boolean;
  readonly #byKey = new Map<string, LocalQueue>();
  readonly #queues = new Set<LocalQueue>();
  /** Keys that callers had to wait for, which is to be reckoned with. */
  readonly #busy = new Recent(MOST_KEYS);
  /** Keys that have just been given back. */
  readonly #left = new Recent(MOST_KEYS);
  readonly #notAdmitted = new Set<() => void>();
  #adopted = 0;
  readonly #releases: Releases;
  #closing = false;
  #whenEmpty: Array<() => void> = [];

  constructor(store: LeaseStore, renewal: Renewal, emit: Emit, options: WaitingRoomOptions) {
    const { fairness, maxLocalHandovers, name, rest = fixed(DEAF_REST) } = options;
    this.#strict = fairness === 'strict';
    this.#releases = new Releases(store, emit, {
      mayTryAgain: () => !this.#closing,
      onEmpty: () => this.#noticeEmpty(),
    });
    this.#shared = {
      store,
      renewal,
      emit,
      name,
      maxLocalHandovers,
      listenFirst: this.#strict,
      rest,
      release: (claim) => this.#releases.send(claim),
      rememberPassedOn: (claim) => this.#releases.remember(claim),
      releaseAgain: (holder) => this.#releases.sendAgain(holder),
    };
  }

  /**
   * Resolves when it is the caller's turn.
   *
   * @throws LockTimeoutError, LockUnavailableError, ClosedError, or the signal's reason.
   */
  enter(key: string, request: LeaseRequest): Promise<Turn> {
    // No async function: there would be one more of everything for every caller that waits.
    if (request.signal?.aborted) return Promise.reject(request.signal.reason);
    if (this.#closing) return Promise.reject(closed(key));
    return this.#queueFor(key).enter(request);
  }

  /** Whether a caller would not have to wait for another one of this process. */
  isFree(key: string): boolean {
    return !this.#byKey.has(key);
  }

  /** Whether a caller is likely to have the key at once: nobody has it here, and nobody had to wait for it lately. */
  isRecentlyUncontended(key: string): boolean {
    return this.isFree(key) && !this.#busy.has(key);
  }

  /** Callers of this process that wait for the key. */
  waiting(key: string): number {
    return this.#byKey.get(key)?.waiting ?? 0;
  }

  /** Callers of this process that wait, key by key. */
  waitingByKey(): ReadonlyMap<string, number> {
    const callers = new Map<string, number>();
    for (const { key, waiting } of this.#queues) {
      if (waiting > 0) callers.set(key, (callers.get(key) ?? 0) + waiting);
    }
    return callers;
  }

  /** Something begins that `close` has to wait for; returns its end. */
  begin(): () => void {
    this.#adopted++;
    return once(() => {
      this.#adopted--;
      this.#noticeEmpty();
    });
  }

  /**
   * A turn with a lease that another process took.
   *
   * @throws LockLostError if nobody has it in that name any more, LockUnavailableError if the store does not say.
   */
  async takeOver(claim: Claim, successor: string, renew: boolean, deadline: Deadline): Promise<Turn> {
    this.throwIfClosing(claim.key);
    const { renewal } = this.#shared;
    const sentAt = await this.#transfer(claim, successor, deadline);
    this.markLost(claim.key, claim.holder);
    const lease = new Lease({ ...claim, holder: successor }, sentAt);
    renewal.add(lease, renew);
    const ended = this.begin();
    const end = once(() => {
      renewal.remove(lease);
      this.#shared.release(lease);
      ended();
    });
    const look = () => renewal.look(lease);
    return { lease, via: 'resumed', pass: () => undefined, hint: () => {}, alone: () => true, look, end };
  }

  /** One whose turn has come still waits for Postgres: it is turned away, too. Returns the end of that. */
  untilAdmitted(key: string, turnAway: (error: ClosedError) => void): () => void {
    const turnThisAway = () => turnAway(closed(key));
    if (this.#closing) turnThisAway();
    else this.#notAdmitted.add(turnThisAway);
    return () => void this.#notAdmitted.delete(turnThisAway);
  }

  /** The key was taken from this holder: if that is one of ours it need not find out by itself. */
  markLost(key: string, holder: string): void {
    this.#byKey.get(key)?.markLost(holder);
  }

  /** Turns away who waits, and resolves when nobody has a turn and everything has been given back. */
  async close(): Promise<void> {
    this.#closing = true;
    try {
      for (const queue of [...this.#queues]) queue.close(closed(queue.key));
      for (const turnAway of [...this.#notAdmitted]) turnAway();
      this.#releases.flush();
      await new Promise<void>((resolve) => {
        this.#whenEmpty.push(resolve);
        this.#noticeEmpty();
      });
    } finally {
      this.#closing = false;
    }
  }

  throwIfClosing(key: string): void {
    if (this.#closing) throw closed(key);
  }

  /** Resolves to when the command was sent that did it. */
  async #transfer(claim: Claim, successor: string, deadline: Deadline): Promise<number> {
    for (;;) {
      const sentAt = now();
      try {
        if (await this.#shared.store.transfer(claim, successor)) return sentAt;
        throw new LockLostError(claim.key, 'gone');
      } catch (error) {
        if (error instanceof LockLostError) throw error;
        if (deadline.passed || isDenial(error)) {
          // Behind the command that it undoes, whose answer may only have been lost.
          this.#shared.release({ ...claim, holder: successor });
          throw new LockUnavailableError(claim.key, error);
        }
        await sleep(Math.min(TRANSFER_PAUSE, deadline.remaining));
      }
    }
  }

  #queueFor(key: string): LocalQueue {
    const known = this.#strict ? undefined : this.#byKey.get(key);
    if (known) return known;
    const queue = new LocalQueue(key, this.#shared, !this.#strict && this.#left.has(key), (waitedFor) => {
      if (waitedFor) this.#busy.note(key, BUSY_TIME);
      this.#left.note(key, RETURN_TIME);
      if (this.#byKey.get(key) === queue) this.#byKey.delete(key);
      this.#queues.delete(queue);
      this.#noticeEmpty();
    });
    this.#byKey.set(key, queue);
    this.#queues.add(queue);
    return queue;
  }

  #noticeEmpty(): void {
    if (this.#queues.size > 0 || this.#adopted > 0 || !this.#releases.empty) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}

function closed(key: string): ClosedError {
  return new ClosedError('The client was closed, so nobody waits for this lock any more. Nothing was done.', { key });
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}
