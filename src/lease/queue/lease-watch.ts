import { LONGEST_TIME } from '../../base/clock.js';
import type { LeaseStore, Watch } from '../store.js';
import type { PollDelay } from './poll-delay.js';
import { WakeableSleep } from './wakeable-sleep.js';

/**
 * Watches a lease that another process may take over, for the callers that wait behind it in this process. Without it,
 * they would learn only at the next renewal that the lease has moved, and would not notice when the key is free.
 */
export class LeaseWatch {
  readonly #store: LeaseStore;
  readonly #key: string;
  readonly #pollDelay: PollDelay;
  readonly #look: () => void;
  readonly #sleep = new WakeableSleep();
  #watch: Watch | undefined;
  #closed = false;

  /** @param look asks the store whether the lease still stands. */
  constructor(store: LeaseStore, key: string, pollDelay: PollDelay, look: () => void) {
    this.#store = store;
    this.#key = key;
    this.#pollDelay = pollDelay;
    this.#look = look;
    void this.#watchLease();
  }

  close(): void {
    this.#closed = true;
    this.#watch?.close();
    this.#sleep.wake();
  }

  async #watchLease(): Promise<void> {
    while (!this.#closed) {
      // Subscribe before the look, so that no change in between is missed.
      this.#watch ??= await this.#listen();
      if (this.#closed) return;
      this.#sleep.reset();
      this.#look();
      const hears = this.#watch !== undefined && this.#watch.hears !== false;
      await this.#sleep.sleep(hears ? LONGEST_TIME : this.#pollDelay());
    }
  }

  async #listen(): Promise<Watch | undefined> {
    // The store reports a failed subscription.
    const watch = await this.#store.watch(this.#key, () => this.#sleep.wake()).catch(() => undefined);
    if (this.#closed) watch?.close();
    return watch;
  }
}
