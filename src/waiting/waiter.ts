import { AsyncResource } from 'node:async_hooks';
import { withCaller } from '../base/caller.js';
import { after, now, stop, type Timer } from '../base/clock.js';
import { type AbortListener, offAbort, onAbort } from '../base/lazy-abort.js';
import type { LeaseRequest, PreopenMoment, Turn, TurnUser } from './turn.js';

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
    this.#user = user;
    this.#resolve = resolve;
    line.add(this);
    onAbort(request.options.signal, this);
  }

  /** Whether its wait time has begun to count. Stays so when it has left the line. */
  get isTimed(): boolean {
    return this.#hasStartedWaiting;
  }

  /** Called when the caller does not get its turn at once. Its wait time matters from here. */
  startWaiting(): void {
    this.request.preopen?.wait();
    if (this.#hasStartedWaiting) return;
    this.#hasStartedWaiting = true;
    this.#line.waits(this);
  }

  /** Begins the caller's transaction ahead, because it is likely to get its turn in a moment. */
  preopen(beside: PreopenMoment): void {
    this.runInAsyncScope(() => this.request.preopen?.open(beside));
  }

  startTurn(turn: Turn): void {
    const user = this.#user;
    // Behind what runs now: the previous turn may still have to send the COMMIT with which this one begins.
    this.#resolve(user ? this.runInAsyncScope(() => SETTLED.then(() => user.useTurn(turn))) : turn);
    this.#end();
  }

  turnAway(error: unknown): void {
    this.#end();
    this.request.preopen?.discard();
    this.#resolve(rejected(error));
    this.#line.left();
  }

  /** Called when the caller's signal aborts. */
  handleEvent(): void {
    this.turnAway(this.request.options.signal?.reason);
  }

  #end(): void {
    // `startWaiting` may still be called after this, and must not start a timeout that nothing stops.
    this.#hasStartedWaiting = true;
    this.#line.remove(this);
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

/**
 * The callers of this process that wait for a key, first come first served. Their wait times share one timer: there may be
 * thousands of callers, and a timer each would cost more than the callers.
 */
export class Line {
  readonly #waiters = new Set<Waiter>();
  readonly #timeoutError: (waitTime: number) => Error;
  readonly #onDeserted: () => void;
  #hasWaited = false;
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  /**
   * @param timeoutError the error of a caller whose wait time is over.
   * @param onDeserted called when the last caller has given up, or was turned away.
   */
  constructor(timeoutError: (waitTime: number) => Error, onDeserted: () => void) {
    this.#timeoutError = timeoutError;
    this.#onDeserted = onDeserted;
  }

  get size(): number {
    return this.#waiters.size;
  }

  get first(): Waiter | undefined {
    for (const waiter of this.#waiters) return waiter;
    return undefined;
  }

  /** Whether a caller did not get its turn at once. */
  get hasWaited(): boolean {
    return this.#hasWaited;
  }

  turnAllAway(error: unknown): void {
    for (const waiter of this.#waiters) waiter.turnAway(error);
  }

  /** Its waiters call this method and those that follow. */
  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  waits(waiter: Waiter): void {
    const { deadline } = waiter.request;
    this.#hasWaited = true;
    if (deadline.passed) this.#giveUp(waiter);
    else this.#fireIn(deadline.remaining);
  }

  remove(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    if (this.#waiters.size === 0) this.#stopTimer();
  }

  left(): void {
    if (this.#waiters.size === 0) this.#onDeserted();
  }

  #giveUp(waiter: Waiter): void {
    waiter.turnAway(this.#timeoutError(waiter.request.options.waitTime));
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
      if (!waiter.isTimed) continue;
      const { deadline } = waiter.request;
      if (deadline.passed) this.#giveUp(waiter);
      else next = Math.min(next, deadline.remaining);
    }
    if (Number.isFinite(next)) this.#fireIn(next);
  }
}
