import { type Deadline, now, sleep } from '../base/clock.js';
import { ClosedError, LockLostError, LockUnavailableError } from '../base/errors.js';
import type { Emit } from '../base/events.js';
import { permitOf } from '../base/permits.js';
import { RecentKeys } from '../base/recent-keys.js';
import { KeyQueue, type QueueDependencies } from './key-queue.js';
import { Lease } from './lease.js';
import { Releases } from './releases.js';
import type { Renewal } from './renewal.js';
import { type Claim, isDenial, type LeaseStore } from './store.js';
import type { LeaseRequest, Turn, TurnUser } from './turn.js';

/** Pause between two tries to take over a lease; milliseconds. */
const TRANSFER_PAUSE = 50;
/** Pause between two looks while wake-ups do not arrive; milliseconds. */
const DEFAULT_POLL_DELAY = 250;

/** How long a key counts as contended after a caller had to wait for it; milliseconds. */
const BUSY_TIME = 1_000;
const MOST_KEYS = 1_000;

export interface WaitingRoomOptions {
  /** `process`: the callers of a process share one place in the store's queue. `strict`: each caller has its own. */
  readonly fairness: 'process' | 'strict';
  readonly passOnAfter: number;
  /** What others are told of this process. */
  readonly name?: string;
  /** How often to look while wake-ups do not arrive. Default: every 250 ms. */
  readonly pollDelay?: () => number;
}

/** The queues of one client, one for each key; and what is under way, for the end of the client. */
export class WaitingRoom {
  readonly #dependencies: QueueDependencies;
  readonly #strict: boolean;
  readonly #byKey = new Map<string, KeyQueue>();
  readonly #queues = new Set<KeyQueue>();
  /** Keys that callers had to wait for lately. */
  readonly #recentlyContended = new RecentKeys(MOST_KEYS);
  /** What is under way, each by what turns it away. `close` waits for it. */
  readonly #underWay = new Set<() => void>();
  readonly #releases: Releases;
  /** How many have closed the room and not opened it again. */
  #closed = 0;
  #whenEmpty: Array<() => void> = [];

  constructor(store: LeaseStore, renewal: Renewal, emit: Emit, options: WaitingRoomOptions) {
    const { fairness, passOnAfter, name, pollDelay = () => DEFAULT_POLL_DELAY } = options;
    this.#strict = fairness === 'strict';
    const releases = new Releases(store, emit, {
      mayTryAgain: () => this.#closed === 0,
      onEmpty: () => this.#noticeEmpty(),
    });
    this.#releases = releases;
    this.#dependencies = { store, renewal, emit, name, passOnAfter, listenFirst: this.#strict, pollDelay, releases };
  }

  /**
   * Resolves to what `user` makes of the caller's turn; without it, to the turn, as soon as the caller has it.
   *
   * @throws LockTimeoutError, LockUnavailableError, ClosedError, or the signal's reason.
   */
  enter<R = Turn>(key: string, request: LeaseRequest, user?: TurnUser<R>): Promise<R> {
    // Not an async function: each waiting caller would cost another promise and frame.
    const { signal } = request.options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#closed > 0) return Promise.reject(closed(key));
    // A process may have several of the permits of a key.
    const known = this.#strict || permitOf(key) !== undefined ? undefined : this.#byKey.get(key);
    return (known ?? this.#newQueue(key, true)).enter(request, user);
  }

  /** Whether no caller of this process has the key or waits for it. */
  isFree(key: string): boolean {
    return !this.#byKey.has(key);
  }

  /**
   * Whether a look in the store is likely to give a caller the key: the room is open, this process does not have the key, nobody
   * had to wait for it lately, and the store is not away.
   */
  isRecentlyUncontended(key: string): boolean {
    if (this.#closed > 0 || this.#byKey.has(key) || this.#recentlyContended.has(key)) return false;
    return this.#dependencies.store.isKnownAway?.(key) !== true;
  }

  /** Callers of this process that wait, key by key. */
  waitingByKey(): ReadonlyMap<string, number> {
    const callers = new Map<string, number>();
    for (const { key, waiting } of this.#queues) {
      if (waiting > 0) callers.set(key, (callers.get(key) ?? 0) + waiting);
    }
    return callers;
  }

  /**
   * Takes over a lease that another handle holds, and returns a turn with it.
   *
   * @throws LockLostError if the holder has lost the lease, LockUnavailableError if the store does not answer, ClosedError,
   *   or the signal's reason.
   */
  async takeOver(
    claim: Claim,
    successor: string,
    { renew, signal, deadline }: { renew: boolean; signal: AbortSignal | undefined; deadline: Deadline },
  ): Promise<Turn> {
    const { releases, store } = this.#dependencies;
    const taken = { ...claim, holder: successor };
    const over = this.begin();
    try {
      for (;;) {
        this.throwIfClosing(claim.key);
        signal?.throwIfAborted();
        const sentAt = now();
        // Not ended by an abort: the command could still be sent, or executed, behind the release that undoes it.
        const answer = await store.transfer(claim, successor).catch((error: unknown) => ({ error }));
        if (answer === true) {
          this.markLost(claim.holder);
          return this.#newQueue(claim.key, false).resume(new Lease(taken, sentAt, { renew }));
        }
        if (answer === false) throw new LockLostError(claim.key, 'gone');
        if (deadline.passed || isDenial(answer.error)) throw new LockUnavailableError(claim.key, answer.error);
        await sleep(Math.min(TRANSFER_PAUSE, deadline.remaining));
      }
    } catch (error) {
      // A reply may have been lost. The release is sent after the command that it undoes.
      releases.send(taken);
      throw error;
    } finally {
      over();
    }
  }

  /** Called when another process has taken the lease from `holder`. A holder of this process learns it at once. */
  markLost(holder: string): void {
    this.#dependencies.renewal.lose(holder);
  }

  /** Registers an operation that `close` waits for. Returns the function that ends it. */
  begin(): () => void {
    return this.untilAdmitted('', () => {});
  }

  /** The same for a call that is not admitted yet: `close` turns it away. */
  untilAdmitted(key: string, turnAway: (error: ClosedError) => void): () => void {
    const onClose = () => turnAway(closed(key));
    if (this.#closed > 0) onClose();
    this.#underWay.add(onClose);
    return () => {
      this.#underWay.delete(onClose);
      this.#noticeEmpty();
    };
  }

  /** Turns away all waiting callers. Resolves when all turns have ended and all leases are released. */
  async close(): Promise<void> {
    const open = this.shut();
    try {
      for (const queue of [...this.#queues]) queue.close(closed(queue.key));
      for (const onClose of [...this.#underWay]) onClose();
      this.#releases.flush();
      await new Promise<void>((resolve) => {
        this.#whenEmpty.push(resolve);
        this.#noticeEmpty();
      });
    } finally {
      open();
    }
  }

  /** Refuses new callers until the returned function is called, once. */
  shut(): () => void {
    this.#closed++;
    return () => {
      this.#closed--;
    };
  }

  throwIfClosing(key: string): void {
    if (this.#closed > 0) throw closed(key);
  }

  /** @param isShared whether later callers of the key enter it, too. */
  #newQueue(key: string, isShared: boolean): KeyQueue {
    const queue = new KeyQueue(key, this.#dependencies, (hasWaited) => {
      if (hasWaited) this.#recentlyContended.note(key, BUSY_TIME);
      if (this.#byKey.get(key) === queue) this.#byKey.delete(key);
      this.#queues.delete(queue);
      this.#noticeEmpty();
    });
    if (isShared) this.#byKey.set(key, queue);
    this.#queues.add(queue);
    return queue;
  }

  #noticeEmpty(): void {
    if (this.#queues.size > 0 || this.#underWay.size > 0 || !this.#releases.empty) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}

function closed(key: string): ClosedError {
  return new ClosedError('The client was closed, so this call no longer waits for the lock. Nothing was done.', {
    key,
  });
}
