import { LONGEST_TIME } from '../base/clock.js';
import { Bell } from './bell.js';
import type { Rest } from './rest.js';
import type { LeaseStore, Watch } from './store.js';

/**
 * Looks after a lease that another process may take over, for those who wait behind it here: its next renewal would
 * find out too, and they would sleep beside a free key until then.
 */
export class Lookout {
  readonly #store: LeaseStore;
  readonly #key: string;
  readonly #rest: Rest;
  readonly #look: () => void;
  readonly #bell = new Bell();
  #watch: Watch | undefined;
  #closed = false;

  /** `look`: asks what has become of the lease. */
  constructor(store: LeaseStore, key: string, rest: Rest, look: () => void) {
    this.#store = store;
    this.#key = key;
    this.#rest = rest;
    this.#look = look;
    void this.#run();
  }

  close(): void {
    this.#closed = true;
    this.#watch?.close();
    this.#bell.ring();
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
    const watch = await this.#store.watch(this.#key, () => this.#bell.ring()).catch(() => undefined);
    if (this.#closed) watch?.close();
    return watch;
  }
}
