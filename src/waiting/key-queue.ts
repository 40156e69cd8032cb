import { now } from '../base/clock.js';
import { LockTimeoutError, LockUnavailableError, type SeenHolder } from '../base/errors.js';
import type { LockVia } from '../base/messages.js';
import { type AcquireDependencies, AcquireLoop } from './acquire.js';
import { Lease } from './lease.js';
import type { Renewal } from './renewal.js';
import { type LeaseRequest, Turn, type TurnUser } from './turn.js';
import { Line, Waiter } from './waiter.js';

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
 * - `new`: no caller yet. The first one enters: `acquiring`. It resumes a handle: `holding`.
 * - `acquiring`: on the way to a lease. Acquired: `holding`. All callers gave up: `over`, or `acquiring` anew for who came since.
 * - `holding`: there is a lease, and a caller has its turn. A turn passes the key to the next caller with its COMMIT
 *   (`Turn.pass`). When no turn uses the lease any more, `#passOn` decides, by the first rule that fits:
 *   1. It suits the next caller, is renewed, held and not to be taken over, `passOnAfter` is not over, and no hint was sent:
 *      `holding`.
 *   2. The next caller may have it, it is held and not to be taken over, and no offer that a renewal has not extended yet (this
 *      process may have a place in the queue, which only a release removes): `yielding`.
 *   3. It is released: `acquiring` if callers wait here, else `over`. The release is sent before the last caller's call
 *      resolves, and nobody awaits its answer.
 * - `yielding`: asks the store whether another process waits. None: `holding`. Otherwise, or without an answer: `acquiring` if
 *   callers still wait here, else `over`.
 * - `over`: no caller, no lease. The next caller of the key enters a new queue.
 */
export class KeyQueue {
  readonly key: string;
  readonly #dependencies: QueueDependencies;
  readonly #onOver: (hasWaited: boolean) => void;
  readonly #line = new Line(
    (waitTime) => this.#timeoutError(waitTime),
    () => this.#acquireLoop.stop(),
  );
  readonly #acquireLoop: AcquireLoop;
  #state: 'new' | 'acquiring' | 'holding' | 'yielding' | 'over' = 'new';
  #lease: Lease | undefined;
  /**
   * Turns whose outcome is unknown: the present one, and those that passed the key on and still wait for their COMMIT.
   */
  #turns = 0;
  /** The turn that began last. */
  #lastTurn = { beganAt: 0, isOfHandle: false };
  /** From when the key passes to no caller of this process before the store has said that no other process waits. */
  #passOnAt = 0;
  /** Whether a hint was sent under this lease: the next process has begun its transaction. */
  #isHinted = false;

  /** @param onOver called with whether a caller had to wait. */
  constructor(key: string, shared: QueueDependencies, onOver: (hasWaited: boolean) => void) {
    this.key = key;
    this.#dependencies = shared;
    this.#onOver = onOver;
    this.#acquireLoop = new AcquireLoop(key, shared, this.#line);
  }

  /** The number of callers of this process that wait for the key. */
  get waiting(): number {
    return this.#line.size;
  }

  /** Resolves to what `user` makes of the caller's turn, or to the turn. */
  enter<R>(request: LeaseRequest, user: TurnUser<R> | undefined): Promise<R> {
    return new Promise((resolve) => {
      const waiter = new Waiter(request, this.#line, user, resolve as (result: unknown) => void);
      if (this.#state === 'new') void this.#acquire();
      else waiter.startWaiting();
      // Another process may have resumed the handle since: callers would wait here until its next renewal.
      if (this.#lease?.mayMove) void this.#dependencies.renewal.look(this.#lease);
    });
  }

  /** The turn of a handle that was resumed, under the lease that it has taken over. */
  resume(lease: Lease): Turn {
    this.#hold(lease);
    return this.#newTurn(lease, 'resumed', true);
  }

  /** Turns away the callers that wait. The present turn goes on. */
  close(error: unknown): void {
    this.#line.turnAllAway(error);
  }

  #timeoutError(waitTime: number): LockTimeoutError | LockUnavailableError {
    const { failure, seen } = this.#acquireLoop;
    if (failure !== undefined) return new LockUnavailableError(this.key, failure, { within: waitTime });
    return new LockTimeoutError(this.key, `${waitTime} ms`, undefined, this.#ownHolder() ?? seen);
  }

  /** The caller of this process that has the key, if one has it. */
  #ownHolder(): SeenHolder | undefined {
    if (this.#lease === undefined || this.#turns === 0) return undefined;
    const { beganAt, isOfHandle } = this.#lastTurn;
    const { name } = this.#dependencies;
    return {
      process: name,
      here: true,
      isHandle: isOfHandle,
      heldFor: now() - beganAt,
      expiresIn: this.#lease.remaining,
    };
  }

  async #acquire(): Promise<void> {
    this.#state = 'acquiring';
    const acquired = await this.#acquireLoop.acquire();
    if (acquired === undefined) return this.#acquireOrEnd();
    this.#hold(acquired.lease);
    this.#passOn(acquired.lease, acquired.via, true);
  }

  /** There is no lease. Callers may have entered after all others had given up. */
  #acquireOrEnd(): void {
    if (this.#line.size > 0) {
      void this.#acquire();
    } else {
      this.#acquireLoop.unsubscribe();
      this.#state = 'over';
      this.#onOver(this.#line.hasWaited);
    }
  }

  #hold(lease: Lease): void {
    this.#state = 'holding';
    this.#lease = lease;
    this.#isHinted = false;
    this.#passOnAt = now() + this.#dependencies.passOnAfter;
    this.#dependencies.renewal.add(lease);
    lease.attach({
      lost: (error) => {
        if (this.#turns > 0) this.#dependencies.emit({ type: 'lease-lost', key: this.key, error });
      },
    });
  }

  #startTurn(waiter: Waiter, lease: Lease, via: LockVia): void {
    waiter.startTurn(this.#newTurn(lease, via, waiter.request.preopen === undefined));
  }

  #newTurn(lease: Lease, via: LockVia, isOfHandle: boolean): Turn {
    this.#turns++;
    this.#lastTurn = { beganAt: now(), isOfHandle };
    return new Turn([{ lease, via, queue: this }]);
  }

  /** Its turns call this method and those that follow. */
  get hasOneTurn(): boolean {
    return this.#turns === 1;
  }

  pass<T>(lease: Lease, take: (next: LeaseRequest, lease: Lease) => T | undefined): T | undefined {
    const next = this.#line.first;
    if (next === undefined || !this.#mayPassTo(next, lease)) return undefined;
    const taken = take(next.request, lease);
    if (taken !== undefined) this.#startTurn(next, lease, 'commit');
    return taken;
  }

  /** The hint costs one command, so it is not sent if hardly anybody is there to get it. */
  hint(lease: Lease): void {
    const { hint } = this.#dependencies.store;
    // Which permit comes free first, nobody knows before it does.
    if (lease.key !== this.key) return;
    const staysHere = this.#line.size > 0 && now() < this.#passOnAt;
    // The work of the turn before it may run again, where its COMMIT was refused. The lease is kept for both.
    if (!lease.isWanted || staysHere || this.#turns > 1 || lease.shared || hint === undefined) return;
    this.#isHinted = true;
    void hint.call(this.#dependencies.store, lease).catch(() => {});
  }

  /** Asks the store now, and marks a missing lease as lost. Resolves to whether it is gone. */
  look(lease: Lease): Promise<boolean> {
    return this.#dependencies.renewal.look(lease);
  }

  ended(lease: Lease): void {
    this.#turns--;
    // Only when the outcome of every turn is known, even if a later turn ends first.
    if (this.#turns === 0) this.#passOn(lease, 'lease');
  }

  /**
   * Called when no turn uses the lease any more: passes it to the next caller, yields it to another process, or
   * releases it. `isFresh`: it has all of its time, whether it is renewed or not.
   */
  #passOn(lease: Lease, via: LockVia, isFresh = false): void {
    const next = this.#line.first;
    if (next && (isFresh ? suits(lease, next) : this.#mayPassTo(next, lease))) {
      this.#startTurn(next, lease, via);
    } else if (next && !lease.loss && !lease.mayMove && !lease.isOffer && mayHave(lease, next)) {
      void this.#yield(lease, next.request);
    } else {
      this.#drop(lease);
      this.#dependencies.releases.send(lease);
      this.#acquireOrEnd();
    }
  }

  /** Whether the lease may pass to this caller as it is. */
  #mayPassTo(waiter: Waiter, lease: Lease): boolean {
    const mayStay = !this.#isHinted && now() < this.#passOnAt;
    return mayStay && lease.renew && suits(lease, waiter) && !lease.mayMove && !lease.loss;
  }

  async #yield(lease: Lease, { options: { leaseTime, renew } }: LeaseRequest): Promise<void> {
    this.#state = 'yielding';
    this.#drop(lease);
    const { key, holder, shared } = lease;
    const claim = { key, holder, leaseTime };
    const sentAt = now();
    try {
      const isKept = await this.#acquireLoop.answered(this.#dependencies.store.yield(claim), sentAt);
      const kept = new Lease(claim, sentAt, { renew, shared });
      if (isKept && kept.loss === undefined) {
        this.#hold(kept);
        return this.#passOn(kept, 'lease', true);
      }
      if (isKept) this.#dependencies.releases.send(claim);
      else this.#dependencies.releases.yielded(claim);
    } catch (error) {
      this.#dependencies.emit({ type: 'look-failed', key: this.key, error });
      this.#dependencies.releases.send(claim);
    }
    this.#acquireOrEnd();
  }

  #drop(lease: Lease): void {
    lease.end();
    this.#dependencies.renewal.remove(lease);
    this.#lease = undefined;
  }
}

/** Whether it is the lease that this caller asks for. */
function suits(lease: Lease, waiter: Waiter): boolean {
  const { leaseTime, renew } = waiter.request.options;
  return lease.leaseTime === leaseTime && lease.renew === renew && mayHave(lease, waiter);
}

function mayHave(lease: Lease, { request }: Waiter): boolean {
  return !lease.shared || request.preopen !== undefined;
}
