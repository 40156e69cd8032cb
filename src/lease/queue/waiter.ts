import { AsyncResource } from 'node:async_hooks';
import { type AbortListener, offAbort, onAbort } from '../../base/abort-listeners.js';
import { LockTimeoutError, LockUnavailableError, type SeenHolder } from '../../base/errors.js';
import type { LeaseRequest, PreopenMoment } from './request.js';
import type { Turn } from './turn.js';

/** The line that a caller stands in. */
export interface WaiterQueue {
  readonly key: string;
  /** Why nobody can say whether the key is free, or `undefined`. */
  trouble(): unknown;
  /** Who has the key, as far as is known. */
  seen(): SeenHolder | undefined;
  /** This one has settled to wait. */
  waits(caller: Waiter): void;
  left(caller: Waiter): void;
}

/**
 * One caller that waits for its turn: it is called, or gives up, or is turned away. An async resource, because what is
 * opened for it is opened by whoever goes its way to the lease, and has to be in its own async context all the same: a
 * tenant or a trace of somebody else's would be found there.
 */
export class Waiter extends AsyncResource implements AbortListener {
  readonly request: LeaseRequest;
  readonly turn: Promise<Turn>;
  readonly #line: WaiterQueue;
  #resolve: (turn: Turn) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #settled = false;

  constructor(request: LeaseRequest, line: WaiterQueue) {
    super('fenced-lock caller', { requireManualDestroy: true });
    this.request = request;
    this.#line = line;
    this.turn = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    onAbort(request.signal, this);
  }

  /** Whether its wait time counts. */
  get isWaiting(): boolean {
    return this.#settled;
  }

  /** It will not be its turn at once, so its wait time begins to matter. */
  startWaiting(): void {
    const { deadline, preopen } = this.request;
    preopen?.discard();
    if (this.#settled) return;
    this.#settled = true;
    if (deadline.passed) this.giveUp();
    else this.#line.waits(this);
  }

  /** It is likely to be its turn in a moment: when a look is answered, or when somebody else's COMMIT is done. */
  preopen(beside: PreopenMoment): void {
    this.runInAsyncScope(() => this.request.preopen?.open(beside));
  }

  startTurn(turn: Turn): void {
    this.#end();
    this.#resolve(turn);
  }

  turnAway(error: unknown): void {
    this.#end();
    this.request.preopen?.discard();
    this.#line.left(this);
    this.#reject(error);
  }

  /** Its wait time is over. */
  giveUp(): void {
    const { waitTime } = this.request;
    const trouble = this.#line.trouble();
    const { key } = this.#line;
    this.turnAway(
      trouble === undefined
        ? new LockTimeoutError(key, `${waitTime} ms`, undefined, this.#line.seen())
        : new LockUnavailableError(key, trouble),
    );
  }

  /** The signal has aborted. */
  handleEvent(): void {
    this.turnAway(this.request.signal?.reason);
  }

  #end(): void {
    // Whoever asked for it may have it settle only now, and a wait time that nobody stops keeps the process.
    this.#settled = true;
    offAbort(this.request.signal, this);
    // Whoever follows async contexts by hooks keeps something for each until it hears that.
    this.emitDestroy();
  }
}
