import { LONGEST_TIME } from '../../base/clock.js';
import type { LeaseStore, Watch } from '../store.js';
import type { PollDelay } from './poll-delay.js';
import { WakeableSleep } from './wakeable-sleep.js';

/**
 * Looks after a lease that another process may take over, for those who wait behind it here: its next renewal would
 * find out too, and they would sleep beside a free key until then.
 */
export class Lookout {
  readonly #store: LeaseStore;
  readonly #key: string;
  readonly #rest: PollDelay;
  readonly #look: () => void;
  readonly #bell = new WakeableSleep();
  #watch: Watch | undefined;
  #closed = false;

  /** `look`: asks what has become of the lease. */
  constructor(store: LeaseStore, key: string, rest: PollDelay, look: () => void) {
    this.#store = store;
    this.#key = key;
    this.#rest = rest;
    this.#look = look;
    void this.#run();
  }

  close(): void {
    this.#closed = true;
    this.#watch?.close();
    this.#bell.wake();
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      // Looked at only once wake-ups come: one in between would be missed.
      this.#watch ??= await this.#listen();
      if (this.#closed) return;
      this.#bell.reset();
      this.#look();
      const hears = this.#watch !== undefined && this.#watch.hears !== false;
      await this.#bell.sleep(hears ? LONGEST_TIME : this.#rest());
    }
  }

  async #listen(): Promise<Watch | undefined> {
    // The store tells of it where it cannot be listened to.
    const watch = await this.#store.watch(this.#key, () => this.#bell.wake()).catch(() => undefined);
    if (this.#closed) watch?.close();
    return watch;
  }
}
