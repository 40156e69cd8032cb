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
  /** Failed and completed releases, the oldest first, each with the time until its lease expires. */
  readonly #failed = new Map<Claim, Deadline>();
  readonly #completed = new Map<Claim, Deadline>();
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

  send({ key, holder, leaseTime }: Claim): void {
    void this.#release({ key, holder, leaseTime }, new Deadline(leaseTime));
  }

  /** A yield has released it: the server that did may be lost before its replica hears of it. */
  yielded({ key, holder, leaseTime }: Claim): void {
    this.#remember({ key, holder, leaseTime }, new Deadline(leaseTime));
  }

  /** Sends all failed releases once more. Those that fail now expire by themselves. */
  flush(): void {
    stop(this.#timer);
    this.#timer = undefined;
    this.#backoff.reset();
    this.#stopListening?.();
    this.#stopListening = undefined;
    this.#completed.clear();
    for (const [claim, expiry] of this.#failed) void this.#release(claim, expiry);
  }

  /** Resolves to whether the store confirmed it. */
  async #release(claim: Claim, expiry: Deadline): Promise<boolean> {
    this.#inFlight++;
    try {
      await this.#store.release(claim);
      this.#failed.delete(claim);
      this.#remember(claim, expiry);
      return true;
    } catch (error) {
      // Only reported as an event, once: the caller's result does not change.
      if (!this.#failed.has(claim)) this.#emit({ type: 'release-failed', key: claim.key, error });
      // Behind the others: their keys may be on another node, which answers.
      this.#failed.delete(claim);
      if (this.#hooks.mayTryAgain()) keep(this.#failed, claim, expiry);
      this.#scheduleRetry();
      return false;
    } finally {
      this.#inFlight--;
      this.#hooks.onEmpty();
    }
  }

  /** A promoted server may have missed the release, and no caller here may ask for the key again. */
  #remember(claim: Claim, expiry: Deadline): void {
    if (!this.#hooks.mayTryAgain()) return;
    keep(this.#completed, claim, expiry);
    this.#stopListening ??= this.#store.onReturn(() => {
      const all = [...this.#completed];
      this.#completed.clear();
      for (const [done, deadline] of all) if (!deadline.passed) void this.#release(done, deadline);
    });
  }

  #scheduleRetry(): void {
    if (this.#failed.size === 0) return;
    // Unref'd: the process may exit, because its leases expire by themselves.
    this.#timer ??= after(this.#backoff.next(), () => void this.#retry()).unref();
  }

  /** Sends the oldest first. If it fails, the others would fail, too. */
  async #retry(): Promise<void> {
    for (const [claim, expiry] of this.#failed) if (expiry.passed) this.#failed.delete(claim);
    const [oldest, ...others] = this.#failed;
    if (oldest && (await this.#release(...oldest))) {
      this.#backoff.reset();
      await Promise.all(others.map((each) => this.#release(...each)));
    }
    this.#timer = undefined;
    this.#scheduleRetry();
  }
}

function keep(releases: Map<Claim, Deadline>, claim: Claim, expiry: Deadline): void {
  releases.set(claim, expiry);
  if (releases.size > REMEMBERED) dropOldest(releases);
}
