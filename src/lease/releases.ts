import { after, Deadline, type Timer } from '../base/clock.js';
import type { Emit } from '../base/events.js';
import type { Claim, LeaseStore } from './store.js';

/** Pause before what failed is sent again; it doubles up to the longest. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 500;

/** How many releases are known after they were done, and how many are owed at most: the rest end by themselves. */
const REMEMBERED = 1_000;
/** How many are sent at once: renewals are to come in between. */
const TOGETHER = 100;

interface ReleaseHooks {
  /** Whether what fails now is to be sent again. */
  mayTryAgain(): boolean;
  /** No command is under way any more. */
  onEmpty(): void;
}

/**
 * Gives back what holders had. Nobody waits for it, and what failed is sent again until the lease has ended by itself:
 * while a node takes over from another one no release gets through, and the others would wait for all of a long lease.
 */
export class Releases {
  readonly #store: LeaseStore;
  readonly #emit: Emit;
  readonly #hooks: ReleaseHooks;
  /** What has failed, and for how long it matters; the oldest first. */
  readonly #owed = new Map<Claim, Deadline>();
  /** What holders lately had, and have no more, and for how long it matters. */
  readonly #done = new Map<string, { readonly claim: Claim; readonly matters: Deadline }>();
  #stopListening: (() => void) | undefined;
  #underWay = 0;
  #pause = FIRST_PAUSE;
  #timer: Timer | undefined;

  constructor(store: LeaseStore, emit: Emit, hooks: ReleaseHooks) {
    this.#store = store;
    this.#emit = emit;
    this.#hooks = hooks;
  }

  /** Whether no command is under way. */
  get empty(): boolean {
    return this.#underWay === 0;
  }

  send(claim: Claim): void {
    const sent = new Deadline(claim.leaseTime);
    void this.#release(claim, (error) => {
      // Nobody learns of it but the events: the caller's result stands.
      this.#emit({ type: 'release-failed', key: claim.key, error });
      if (!this.#hooks.mayTryAgain()) return;
      this.#owed.set(claim, sent);
      if (this.#owed.size > REMEMBERED) dropOldest(this.#owed);
      this.#later();
    });
  }

  /** The store has said that this holder has nothing any more. */
  remember(claim: Claim): void {
    if (!this.#hooks.mayTryAgain()) return;
    const { key, holder, leaseTime } = claim;
    this.#done.set(holder, { claim: { key, holder, leaseTime }, matters: new Deadline(leaseTime) });
    this.#stopListening ??= this.#store.onReturn(() => this.#sendAllAgain());
    if (this.#done.size > REMEMBERED) dropOldest(this.#done);
  }

  /**
   * The store says that this holder has a key. If that one was ours, and has given it back, then a server has forgotten
   * what it said: one took over from it that had not heard of it yet, or it was no master any more.
   */
  sendAgain(holder: string): void {
    const done = this.#done.get(holder);
    if (done === undefined) return;
    this.#done.delete(holder);
    this.send(done.claim);
  }

  /** What took over may have heard none of it, and nobody here may ask for those keys again. */
  #sendAllAgain(): void {
    const all = [...this.#done.values()].filter(({ matters }) => !matters.passed);
    this.#done.clear();
    for (const { claim } of all) this.send(claim);
  }

  /** All that is owed once more; what fails now ends by itself. */
  flush(): void {
    this.#timer?.stop();
    this.#timer = undefined;
    this.#stopListening?.();
    this.#stopListening = undefined;
    this.#done.clear();
    for (const claim of this.#owed.keys()) void this.#release(claim);
    this.#owed.clear();
  }

  /** Resolves to whether it was done. */
  async #release(claim: Claim, failed: (error: unknown) => void = () => {}): Promise<boolean> {
    this.#underWay++;
    try {
      await this.#store.release(claim);
      this.remember(claim);
      return true;
    } catch (error) {
      failed(error);
      return false;
    } finally {
      this.#underWay--;
      this.#hooks.onEmpty();
    }
  }

  #later(): void {
    // No reason for a process to stay: its leases end by themselves.
    this.#timer ??= after(this.#pause, () => void this.#again()).unref();
  }

  /** The oldest goes first: where that one gets no answer, neither would the others. */
  async #again(): Promise<void> {
    for (const [claim, sent] of this.#owed) if (sent.passed) this.#owed.delete(claim);
    const [oldest] = this.#owed.keys();
    if (oldest && (await this.#settle(oldest))) {
      this.#pause = FIRST_PAUSE;
      const rest = [...this.#owed.keys()];
      for (let sent = 0; sent < rest.length; sent += TOGETHER) {
        await Promise.all(rest.slice(sent, sent + TOGETHER).map((claim) => this.#settle(claim)));
      }
    } else {
      // What is at another node need not wait for it.
      const matters = oldest && this.#owed.get(oldest);
      if (oldest && matters && this.#owed.delete(oldest)) this.#owed.set(oldest, matters);
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
    }
    this.#timer = undefined;
    if (this.#owed.size > 0) this.#later();
    else this.#pause = FIRST_PAUSE;
  }

  async #settle(claim: Claim): Promise<boolean> {
    const done = await this.#release(claim);
    if (done) this.#owed.delete(claim);
    return done;
  }
}

function dropOldest(map: Map<unknown, unknown>): void {
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
