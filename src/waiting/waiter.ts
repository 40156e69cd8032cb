import { AsyncResource } from 'node:async_hooks';
import { withCaller } from '../base/caller.js';
import { after, now, stop, type Timer } from '../base/clock.js';
import type { LockTimeoutError, LockUnavailableError } from '../base/errors.js';
import { type AbortListener, offAbort, onAbort } from '../base/lazy-abort.js';
import type { Turn } from './lease-set.js';
import type { LeaseRequest, PreopenMoment } from './request.js';

/** Callers whose wait times end within this time of each other give up together; milliseconds. */
const TOGETHER = 2;

/** What a caller does in its turn. An object and not a closure, because there is one for every waiting caller. */
export interface TurnUser<R> {
  /** Called once, in the caller's async context. */
  useTurn(turn: Turn): Promise<R>;
}

/**
 * A caller that waits for its turn. It gets its turn, gives up, or is turned away.
 *
 * It is an async resource, because the acquire loop opens transactions on behalf of this caller. They must run in the
 * caller's async context: a tenant or a trace there would otherwise be that of another caller.
 */
export class Waiter extends AsyncResource implements AbortListener {
  readonly request: LeaseRequest;
  readonly #line: Line;
  readonly #user: TurnUser<unknown> | undefined;
  readonly #resolve: (result: unknown) => void;
  #hasStartedWaiting = false;

  /**
   * @param user what uses the turn; `undefined` if the caller wants the turn itself.
   * @param resolve resolves the caller's promise. The function that rejects it is not kept: it would cost memory for every
   * waiting caller.
   */
  constructor(
    request: LeaseRequest,
    line: Line,
    user: TurnUser<unknown> | undefined,
    resolve: (result: unknown) => void,
  ) {
    super('fenced-lock caller', { requireManualDestroy: true });
    this.request = request;
    this.#line = line;
    line.add(this);
    this.#user = user;
    this.#resolve = resolve;
    onAbort(request.options.signal, this);
  }

  /** Whether the wait time runs, or the wait is over. */
  get isWaiting(): boolean {
    return this.#hasStartedWaiting;
  }

  /** Called when the caller does not get its turn at once. Its wait time matters from here. */
  startWaiting(): void {
    const { deadline, preopen } = this.request;
    preopen?.wait();
    if (this.#hasStartedWaiting) return;
    this.#hasStartedWaiting = true;
    if (deadline.passed) this.giveUp();
    else this.#line.waits(this);
  }

  /** For a caller that may be waiting already: `startWaiting` would discard a transaction that was begun ahead for it. */
  ensureWaiting(): void {
    if (!this.#hasStartedWaiting) this.startWaiting();
  }

  /** Begins the caller's transaction ahead, because it is likely to get its turn in a moment. */
  preopen(beside: PreopenMoment): void {
    this.runInAsyncScope(() => this.request.preopen?.open(beside));
  }

  startTurn(turn: Turn): void {
    this.#line.remove(this);
    const user = this.#user;
    if (user === undefined) {
      this.#resolve(turn);
    } else {
      // Behind what runs now: the previous turn may still have to send the COMMIT with which this one begins.
      this.#resolve(this.runInAsyncScope(() => SETTLED.then(() => user.useTurn(turn))));
    }
    this.#end();
  }

  turnAway(error: unknown): void {
    this.#end();
    this.request.preopen?.discard();
    this.#line.left(this);
    this.#resolve(rejected(error));
  }

  /** Called when the wait time is over. */
  giveUp(): void {
    this.turnAway(this.#line.timeoutError(this.request));
  }

  /** Called when the caller's signal aborts. */
  handleEvent(): void {
    this.turnAway(this.request.options.signal?.reason);
  }

  #end(): void {
    // `startWaiting` may still be called after this, and must not start a timeout that nothing stops.
    this.#hasStartedWaiting = true;
    offAbort(this.request.options.signal, this);
    // Tools that track async resources by hooks keep an entry until they are told.
    this.emitDestroy();
  }
}

const SETTLED = Promise.resolve();

/** Rejects with the error and the frames of the caller in its stack. */
async function rejected(error: unknown): Promise<never> {
  // V8 finds those frames only once the caller's promise has adopted this one, which takes one reaction.
  await SETTLED;
  await SETTLED;
  throw withCaller(error);
}

interface LineEvents {
  /** The error of a caller whose wait time is over. */
  timeoutError(request: LeaseRequest): LockTimeoutError | LockUnavailableError;
  /** A caller has to wait. */
  onWait(): void;
  /** The last caller has given up, or was turned away. */
  onDeserted(): void;
}

/**
 * The callers of this process that wait for a key, first come first served. Their wait times share one timer: there may be
 * thousands of callers, and a timer each would cost more than the callers.
 */
export class Line {
  readonly #waiters = new Set<Waiter>();
  readonly #events: LineEvents;
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  constructor(events: LineEvents) {
    this.#events = events;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** The first caller; with `sharing`, the first that can do without a lease of its own. `undefined` if there is none. */
  first(sharing = false): Waiter | undefined {
    for (const waiter of this.#waiters) if (!sharing || waiter.request.mayShare) return waiter;
    return undefined;
  }

  turnAllAway(error: unknown): void {
    for (const waiter of this.#waiters) waiter.turnAway(error);
  }

  /** Its waiters call this method and those that follow. */
  timeoutError(request: LeaseRequest): LockTimeoutError | LockUnavailableError {
    return this.#events.timeoutError(request);
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  waits({ request }: Waiter): void {
    this.#events.onWait();
    this.#fireIn(request.deadline.remaining);
  }

  remove(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    if (this.#waiters.size === 0) this.#stopTimer();
  }

  left(waiter: Waiter): void {
    this.remove(waiter);
    if (this.#waiters.size === 0) this.#events.onDeserted();
  }

  #fireIn(remaining: number): void {
    const at = now() + remaining;
    if (at >= this.#firesAt) return;
    stop(this.#timer);
    this.#firesAt = at;
    this.#timer = after(remaining, () => this.#check());
  }

  #stopTimer(): void {
    stop(this.#timer);
    this.#firesAt = Number.POSITIVE_INFINITY;
  }

  #check(): void {
    this.#stopTimer();
    let next = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiters) {
      if (!waiter.isWaiting) continue;
      const { deadline } = waiter.request;
      if (deadline.passed) waiter.giveUp();
      else next = Math.min(next, deadline.remaining);
    }
    if (Number.isFinite(next)) this.#fireIn(Math.max(next, TOGETHER));
  }
}
