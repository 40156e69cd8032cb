import { after, now, stop, type Timer } from '../base/clock.js';
import { LockTimeoutError, LockUnavailableError, type SeenHolder } from '../base/errors.js';
import type { LockVia } from '../base/messages.js';
import { type AcquireDependencies, AcquireLoop } from './acquire.js';
import { Lease } from './lease.js';
import type { Renewal } from './renewal.js';
import type { LeaseRequest } from './request.js';
import { Line, type TurnUser, Waiter } from './waiter.js';

/**
 * How long after a turn has begun the subscription may be closed: it must not delay the first statements of the turn;
 * milliseconds.
 */
const UNSUBSCRIBE_AFTER = 2;

/** What all queues of a client share. */
export interface QueueDependencies extends AcquireDependencies {
  readonly renewal: Renewal;
  /** What others are told of this process. */
  readonly name: string | undefined;
  /** For how long the key passes from caller to caller of this process while another process waits; milliseconds. */
  readonly passOnAfter: number;
}

/**
 * The queue of one process for one key. It holds the callers that wait, one place in the store's queue, and at most one
 * lease, which passes from caller to caller. Its states, and how it leaves them:
 *
 * - `idle`: no caller, no lease. A caller enters: `acquiring`.
 * - `acquiring`: on the way to a lease. Acquired: `holding`. All callers gave up: `idle`.
 * - `holding`: at least one caller has its turn. When no turn uses the lease any more, `#passOn` decides:
 *   - It suits the next caller: `holding`.
 *   - It does not suit the next caller, `passOnAfter` is over, or a hint was sent: `yielding`.
 *   - Otherwise, as when nobody waits here, or when it is lost, an offer that no renewal has extended yet (this process may
 *     have a place in the queue, which only a release removes), or may be taken over by another process, it is released:
 *     `acquiring` if callers wait here, else `idle`. The release is sent before the last caller's call resolves, and nobody
 *     awaits its answer.
 * - `yielding`: asks the store whether another process waits. None: `holding`. Otherwise: `acquiring`.
 */
export class KeyQueue {
  readonly key: string;
  readonly #dependencies: QueueDependencies;
  readonly #onIdle: (waitedFor: boolean) => void;
  readonly #line = new Line({
    timeoutError: (request) => this.#timeoutError(request),
    onWait: () => {
      this.#waitedFor = true;
    },
    onDeserted: () => this.#acquireLoop.stop(),
  });
  #state: 'idle' | 'acquiring' | 'holding' | 'yielding' = 'idle';
  #lease: Lease | undefined;
  /** Whether the lease is renewed. Only then is it as good for the next caller as for the last. */
  #renewed = false;
  #unsubscribeTimer: Timer | undefined;
  /** Whether a caller had to wait since the queue was idle. */
  #waitedFor = false;
  /**
   * Turns whose outcome is unknown: the present one, and those that passed the key on and still wait for their COMMIT.
   */
  #turns = 0;
  /** How many of them have passed the key on and may run again, because their COMMIT was refused. */
  #runAgain = 0;
  /** The turn that began last. */
  #lastTurn = { beganAt: 0, isOfHandle: false };
  /** From when the key passes to no caller of this process before the store has said that no other process waits. */
  #passOnAt = 0;
  /** Whether a hint was sent under this lease: the next process has begun its transaction. */
  #isHinted = false;
  readonly #acquireLoop: AcquireLoop;

  /** @param onIdle called with whether a caller had to wait. */
  constructor(key: string, shared: QueueDependencies, onIdle: (waitedFor: boolean) => void) {
    this.key = key;
    this.#dependencies = shared;
    this.#onIdle = onIdle;
    this.#acquireLoop = new AcquireLoop(key, shared, this.#line);
  }

  /** The number of callers of this process that wait for the key. */
  get waiting(): number {
    return this.#line.size;
  }

  /** Resolves to the caller's turn; with `user`, to the result of its `useTurn`. */
  enter(request: LeaseRequest, user: TurnUser<unknown> | undefined): Promise<unknown> {
    return new Promise((resolve) => {
      const waiter = new Waiter(request, this.#line, user, resolve);
      this.#acquireLoop.keepPlace(request);
      if (this.#state === 'idle') void this.#acquire();
      else if (!this.#isNextWithoutStore(waiter)) waiter.startWaiting();
      // Another process may have resumed the handle since: callers would wait here until its next renewal.
      if (this.#lease?.mayMove) void this.#dependencies.renewal.look(this.#lease);
    });
  }

  /** Turns away the callers that wait. The present turn goes on. */
  close(error: unknown): void {
    this.#line.turnAllAway(error);
  }

  /** Called when another process has taken the lease from `holder`. */
  markLost(holder: string): void {
    if (this.#lease?.holder === holder) this.#lease.lose('gone');
  }

  #timeoutError(request: LeaseRequest): LockTimeoutError | LockUnavailableError {
    const { waitTime } = request.options;
    const failure = this.#acquireLoop.failure(request);
    if (failure === undefined) return new LockTimeoutError(this.key, `${waitTime} ms`, undefined, this.#seenHolder());
    return new LockUnavailableError(this.key, failure, { within: waitTime, tries: this.#acquireLoop.failedLooks });
  }

  /** Who has the key, as far as this process knows. */
  #seenHolder(): SeenHolder | undefined {
    const lease = this.#lease;
    if (lease === undefined || this.#turns === 0) return this.#acquireLoop.seen();
    return {
      process: this.#dependencies.name,
      here: true,
      isHandle: this.#lastTurn.isOfHandle,
      heldFor: now() - this.#lastTurn.beganAt,
      expiresIn: lease.remaining,
    };
  }

  /** Whether a caller that enters need not wait for the handle in front of it, which waits for the store. */
  #isNextWithoutStore(waiter: Waiter): boolean {
    const canGoOn = this.#state === 'acquiring' && this.#acquireLoop.canGoOnWithout(waiter.request);
    return canGoOn && this.#line.first(true) === waiter;
  }

  async #acquire(): Promise<void> {
    this.#state = 'acquiring';
    const lease = await this.#acquireLoop.acquire();
    this.#waitedFor ||= lease === undefined;
    if (lease) this.#take(lease, this.#acquireLoop.wasElsewhere ? 'redis' : 'free');
    // A caller entered after all others had given up.
    else if (this.#line.size > 0) void this.#acquire();
    else this.#becomeIdle();
  }

  #take(lease: Lease, via: LockVia): void {
    this.#lease = lease;
    this.#isHinted = false;
    this.#passOnAt = now() + this.#dependencies.passOnAfter;
    const first = this.#line.first(lease.shared);
    this.#renewed = first?.request.options.renew ?? false;
    this.#dependencies.renewal.add(lease, this.#renewed);
    if (lease.isOffer) void this.#dependencies.renewal.look(lease);
    lease.attach({
      lost: (error) => {
        if (this.#turns > 0) this.#dependencies.emit({ type: 'lease-lost', key: this.key, error });
      },
    });
    this.#state = 'holding';
    stop(this.#unsubscribeTimer);
    if (this.#acquireLoop.listens) this.#unsubscribeLater();
    const isWhole = this.#renewed || !lease.isOffer;
    if (first && isWhole && lease.leaseTime === first.request.options.leaseTime) this.#startTurn(first, lease, via);
    else this.#passOn(lease, via);
    // The store may be back: a caller that was to go on without it waits like the others then.
    this.#line.first(true)?.ensureWaiting();
  }

  #unsubscribeLater(): void {
    this.#unsubscribeTimer = after(UNSUBSCRIBE_AFTER, () => {
      // If nobody waits here, messages, such as that of its own release, would wake this process in vain.
      if (this.#state === 'holding' && this.#line.size === 0) this.#acquireLoop.unsubscribe();
    });
  }

  #startTurn(waiter: Waiter, lease: Lease, via: LockVia): void {
    this.#turns++;
    this.#lastTurn = { beganAt: now(), isOfHandle: !waiter.request.mayShare };
    let [hasPassed, hasEnded, isAgain] = [false, false, false];
    waiter.startTurn({
      lease,
      via,
      pass: (take) => {
        const next = this.#line.first(lease.shared);
        // A turn that runs again waits for the key's row. An admission that is sent with this COMMIT would get the row first, and so
        // would each later one.
        if (hasPassed || hasEnded || this.#runAgain > 0 || next === undefined) return undefined;
        if (!this.#mayPassTo(next, lease)) return undefined;
        const taken = take(next.request, lease);
        if (taken === undefined) return undefined;
        hasPassed = true;
        this.#startTurn(next, lease, 'commit');
        return taken;
      },
      hint: () => {
        if (!hasPassed && !hasEnded) this.#hint(lease);
      },
      runsAgain: () => {
        // Nobody has begun behind a turn that has not passed the key on.
        if (!hasPassed || hasEnded || isAgain) return;
        isAgain = true;
        this.#runAgain++;
      },
      alone: () => this.#turns === 1,
      look: () => this.#dependencies.renewal.look(lease),
      end: () => {
        if (hasEnded) return;
        hasEnded = true;
        if (isAgain) this.#runAgain--;
        this.#turns--;
        // Only when the outcome of every turn is known, even if a later turn ends first.
        if (this.#turns === 0) this.#passOn(lease);
      },
    });
  }

  /** The hint costs one command, so it is not sent if hardly anybody is there to get it. */
  #hint(lease: Lease): void {
    const { hint } = this.#dependencies.store;
    const staysHere = this.#line.size > 0 && now() < this.#passOnAt;
    // The work of the turn before it may run again, where its COMMIT was refused. The lease is kept for both.
    if (!lease.isWanted || staysHere || this.#turns > 1 || lease.shared || lease.loss || hint === undefined) return;
    this.#isHinted = true;
    void hint.call(this.#dependencies.store, lease).catch(() => {});
  }

  /**
   * Called when no turn uses the lease any more: passes it to the next caller, yields it to another process, or
   * releases it.
   */
  #passOn(lease: Lease, via: LockVia = 'lease'): void {
    const next = this.#line.first(lease.shared);
    if (next && this.#mayPassTo(next, lease)) {
      this.#state = 'holding';
      this.#startTurn(next, lease, via);
    } else if (next && lease.loss === undefined && !lease.mayMove && !lease.isOffer) {
      void this.#yield(lease, next.request);
    } else {
      this.#release(lease);
    }
  }

  /** Whether the lease may pass to this caller as it is. */
  #mayPassTo(waiter: Waiter, lease: Lease): boolean {
    const { leaseTime, renew } = waiter.request.options;
    // A lease that is not renewed has less time left than the next caller asks for.
    const isAsGood = this.#renewed && renew && leaseTime === lease.leaseTime;
    const mayStay = !this.#isHinted && now() < this.#passOnAt;
    return isAsGood && mayStay && !lease.mayMove && !lease.loss;
  }

  async #yield(lease: Lease, { options: { leaseTime } }: LeaseRequest): Promise<void> {
    this.#state = 'yielding';
    this.#dropLease(lease);
    const claim = { key: lease.key, holder: lease.holder, leaseTime };
    const sentAt = now();
    try {
      if (await this.#acquireLoop.answered(this.#dependencies.store.yield(claim), sentAt)) {
        const kept = new Lease(claim, sentAt, { shared: lease.shared });
        if (kept.loss === undefined) return this.#take(kept, 'lease');
        this.#dependencies.releases.send(claim);
      } else {
        this.#dependencies.releases.remember(claim);
      }
    } catch (error) {
      this.#dependencies.emit({ type: 'look-failed', key: this.key, error });
      this.#dependencies.releases.send(claim);
    }
    void this.#acquire();
  }

  #release(lease: Lease): void {
    this.#dropLease(lease);
    this.#dependencies.releases.send(lease);
    if (this.#line.size > 0) void this.#acquire();
    else this.#becomeIdle();
  }

  #dropLease(lease: Lease): void {
    lease.end();
    this.#dependencies.renewal.remove(lease);
    this.#lease = undefined;
  }

  #becomeIdle(): void {
    stop(this.#unsubscribeTimer);
    this.#acquireLoop.unsubscribe();
    this.#state = 'idle';
    this.#onIdle(this.#waitedFor);
  }
}
