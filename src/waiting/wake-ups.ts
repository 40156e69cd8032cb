import { after, now, stop, type Timer } from '../base/clock.js';
import type { LeaseStore, WakeUp, Watch } from './store.js';

/** How long offers to other processes may delay the next look; milliseconds. */
const LONGEST_DELAY = 500;

/** The wake-ups of one key: wakes the process that waits when a message says that it is worth looking at the key. */
export class WakeUps {
  readonly #store: LeaseStore;
  readonly #key: string;
  readonly #holder: () => string;
  readonly #heard: (wakeUp: WakeUp) => void;
  #watch: Watch | undefined;
  /** Until when the key is offered to this process, by the last message; 0 if it is not. */
  #offeredUntil = 0;
  /** When the last look was sent. */
  #lookedAt = now();
  /** Before a sleep: the latest time at which the next one ends. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  /** Ends the present sleep. */
  #wake: (() => void) | undefined;

  /**
   * @param holder the id under which the store knows this process at the moment.
   * @param heard called for each message, before anybody is woken by it.
   */
  constructor(store: LeaseStore, key: string, holder: () => string, heard: (wakeUp: WakeUp) => void) {
    this.#store = store;
    this.#key = key;
    this.#holder = holder;
    this.#heard = heard;
  }

  /** Whether this process is subscribed to the key's channel. */
  get listens(): boolean {
    return this.#watch !== undefined;
  }

  /** Whether it is known that messages do not arrive. */
  get isDeaf(): boolean {
    return this.#watch?.hears === false;
  }

  /** Subscribes, and resolves to whether the server has confirmed it. */
  async listen(): Promise<boolean> {
    try {
      this.#watch = await this.#store.watch(this.#key, (wakeUp) => this.#onWakeUp(wakeUp));
      return true;
    } catch {
      // The store reports the failure once. Here, each try for each key would report it again.
      return false;
    }
  }

  unsubscribe(): void {
    this.#watch?.close();
    this.#watch = undefined;
  }

  /** Forgets the messages that came before this look. Returns for how long the key is offered to this process; milliseconds. */
  beginLook(): number {
    this.#wakesAt = Number.POSITIVE_INFINITY;
    this.#lookedAt = now();
    const offeredFor = Math.max(0, this.#offeredUntil - now());
    this.#offeredUntil = 0;
    return offeredFor;
  }

  /** Resolves after `ms`, or when the process is woken, even if that was just before. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const time = Math.min(ms, this.#wakesAt - now());
      if (time <= 0) return resolve();
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
      this.#timer = after(time, this.#wake);
    });
  }

  wake(): void {
    this.#wakeIn(0);
  }

  #wakeIn(ms: number): void {
    if (this.#wake === undefined) {
      // An earlier time may have been given already.
      this.#wakesAt = Math.min(this.#wakesAt, now() + ms);
      return;
    }
    stop(this.#timer);
    if (ms <= 0) this.#wake();
    else this.#timer = after(ms, this.#wake);
  }

  #onWakeUp(wakeUp: WakeUp): void {
    this.#heard(wakeUp);
    if (wakeUp !== 'look' && 'next' in wakeUp) {
      // Somebody has the key: an offer that was made before this is over.
      this.#offeredUntil = 0;
      return;
    }
    const isOffer = wakeUp !== 'look' && wakeUp.turn === this.#holder();
    if (wakeUp !== 'look') this.#offeredUntil = isOffer ? now() + wakeUp.expiresIn : 0;
    if (wakeUp === 'look' || isOffer) this.wake();
    // The key is offered to another process. If that process does not take it, the key becomes free without a message.
    // On a busy key, the next offer comes before, so the look has an upper bound: a place that was lost with the
    // store's queue would otherwise never be taken again.
    else this.#wakeIn(Math.min(wakeUp.expiresIn + 1, Math.max(1, this.#lookedAt + LONGEST_DELAY - now())));
  }
}
