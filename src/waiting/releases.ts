import { Backoff } from '../base/backoff.js';
import { after, Deadline, stop, type Timer } from '../base/clock.js';
import { dropOldest } from '../base/drop-oldest.js';
import type { Emit } from '../base/events.js';
import type { Claim, LeaseStore } from './store.js';

/** First and longest pause before failed releases are sent again; milliseconds. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 500;

/** How many completed and how many failed releases are kept. Beyond that, leases expire by themselves. */
const REMEMBERED = 1_000;
/** How many releases are sent together, so that renewals are not delayed behind them. */
const TOGETHER = 100;

interface ReleaseHooks {
  /** Whether a release that fails now is sent again. */
  mayTryAgain(): boolean;
  /** Called when no command is in flight any more. */
  onEmpty(): void;
}

/**
 * Sends releases in the background. A failed one is sent again until the lease has expired: during a failover no
 * release gets through, and the other callers would wait for the rest of a long lease.
 */
export class Releases {
  readonly #store: LeaseStore;
  readonly #emit: Emit;
  readonly #hooks: ReleaseHooks;
  /** Failed releases, the oldest first, each with the time until its lease expires. */
  readonly #failed = new Map<Claim, Deadline>();
  /** Completed releases by holder, each with the time until its lease would have expired. */
  readonly #completed = new Map<string, { readonly claim: Claim; readonly expiry: Deadline }>();
  #stopListening: (() => void) | undefined;
  #inFlight = 0;
  readonly #backoff = new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
  #timer: Timer | undefined;

  constructor(store: LeaseStore, emit: Emit, hooks: ReleaseHooks) {
    this.#store = store;
    this.#emit = emit;
    this.#hooks = hooks;
  }

  /** Whether no command is in flight. */
  get empty(): boolean {
    return this.#inFlight === 0;
  }

  send(claim: Claim): void {
    const expiry = new Deadline(claim.leaseTime);
    void this.#release(claim, (error) => {
      // Only reported as an event: the caller's result does not change.
      this.#emit({ type: 'release-failed', key: claim.key, error });
      if (!this.#hooks.mayTryAgain()) return;
      this.#failed.set(claim, expiry);
      if (this.#failed.size > REMEMBERED) dropOldest(this.#failed);
      this.#scheduleRetry();
    });
  }

  /** Called when the store has confirmed that this holder has nothing any more. */
  remember(claim: Claim): void {
    if (!this.#hooks.mayTryAgain()) return;
    const { key, holder, leaseTime } = claim;
    this.#completed.set(holder, { claim: { key, holder, leaseTime }, expiry: new Deadline(leaseTime) });
    this.#stopListening ??= this.#store.onReturn(() => this.#sendAllAgain());
    if (this.#completed.size > REMEMBERED) dropOldest(this.#completed);
  }

  /**
   * Called when the store still shows `holder`. If this process has released it, a server has lost the release: a
   * replica was promoted without it, or the server was no master any more. The release is sent again.
   */
  sendAgain(holder: string): void {
    const done = this.#completed.get(holder);
    if (done === undefined) return;
    this.#completed.delete(holder);
    this.send(done.claim);
  }

  /** The promoted server may have missed all these releases, and no caller here may ask for those keys again. */
  #sendAllAgain(): void {
    const all = [...this.#completed.values()].filter(({ expiry }) => !expiry.passed);
    this.#completed.clear();
    for (const { claim } of all) this.send(claim);
  }

  /** Sends all failed releases once more. Those that fail now expire by themselves. */
  flush(): void {
    stop(this.#timer);
    this.#timer = undefined;
    this.#backoff.reset();
    this.#stopListening?.();
    this.#stopListening = undefined;
    this.#completed.clear();
    for (const claim of this.#failed.keys()) void this.#release(claim);
    this.#failed.clear();
  }

  /** Resolves to whether the store confirmed it. */
  async #release(claim: Claim, failed: (error: unknown) => void = () => {}): Promise<boolean> {
    this.#inFlight++;
    try {
      await this.#store.release(claim);
      this.remember(claim);
      return true;
    } catch (error) {
      failed(error);
      return false;
    } finally {
      this.#inFlight--;
      this.#hooks.onEmpty();
    }
  }

  #scheduleRetry(): void {
    // Unref'd: the process may exit, because its leases expire by themselves.
    this.#timer ??= after(this.#backoff.next(), () => void this.#retryAll()).unref();
  }

  /** Sends the oldest first. If it fails, the others would fail, too. */
  async #retryAll(): Promise<void> {
    for (const [claim, expiry] of this.#failed) if (expiry.passed) this.#failed.delete(claim);
    const [oldest] = this.#failed.keys();
    if (oldest && (await this.#retry(oldest))) {
      this.#backoff.reset();
      const others = [...this.#failed.keys()];
      for (let at = 0; at < others.length; at += TOGETHER) {
        await Promise.all(others.slice(at, at + TOGETHER).map((claim) => this.#retry(claim)));
      }
    } else {
      // Move it to the end: another key may be on another node, which answers.
      const expiry = oldest && this.#failed.get(oldest);
      if (oldest && expiry && this.#failed.delete(oldest)) this.#failed.set(oldest, expiry);
    }
    this.#timer = undefined;
    if (this.#failed.size > 0) this.#scheduleRetry();
    else this.#backoff.reset();
  }

  async #retry(claim: Claim): Promise<boolean> {
    const done = await this.#release(claim);
    if (done) this.#failed.delete(claim);
    return done;
  }
}
