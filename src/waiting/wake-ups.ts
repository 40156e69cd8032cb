import { after, now, stop, type Timer } from '../base/clock.js';
import type { LeaseStore, WakeUp, Watch } from './store.js';

/** How long offers to other processes may delay the next look; milliseconds. */
const LONGEST_DELAY = 500;

/** The wake-ups of one key: wakes the process that waits when a message says that it is worth looking at the key. */
export class WakeUps {
  readonly #store: LeaseStore;
  readonly #key: string;
  readonly #hinted: () => void;
  #watch: Watch | undefined;
  /** The id under which the store knows this process; empty while it does not wait. */
  #holder = '';
  /** Until when the key is offered to this process, by the last message; 0 if it is not. */
  #offeredUntil = 0;
  /** When the last look was sent. */
  #lookedAt = 0;
  /** When the present sleep ends at the latest; before a sleep, the next one. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  /** Ends the present sleep. */
  #wake: (() => void) | undefined;

  /** @param hinted called when the holder is about to commit, and this process is next. */
  constructor(store: LeaseStore, key: string, hinted: () => void) {
    this.#store = store;
    this.#key = key;
    this.#hinted = hinted;
  }

  /** Whether this process is subscribed to the key's channel. */
  get listens(): boolean {
    return this.#watch !== undefined;
  }

  /** Whether messages arrive, as far as is known. */
  get hears(): boolean {
    return this.#watch !== undefined && this.#watch.hears !== false;
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
  beginLook(holder: string): number {
    const offeredFor = holder === this.#holder ? Math.max(0, this.#offeredUntil - now()) : 0;
    this.#holder = holder;
    this.#offeredUntil = 0;
    this.#wakesAt = Number.POSITIVE_INFINITY;
    this.#lookedAt = now();
    return offeredFor;
  }

  /** This process does not wait any more: a hint or an offer that comes late is for nobody. */
  rest(): void {
    this.#holder = '';
  }

  /** Resolves after `ms`, or when the process is woken, even if that was just before. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
      this.#wakesAt = Math.min(this.#wakesAt, now() + ms);
      this.#startTimer();
    });
  }

  /** Ends the present sleep after `ms` at the latest, or else the next one. */
  wakeIn(ms: number): void {
    this.#wakesAt = Math.min(this.#wakesAt, now() + ms);
    this.#startTimer();
  }

  #startTimer(): void {
    if (this.#wake === undefined) return;
    stop(this.#timer);
    const left = this.#wakesAt - now();
    if (left <= 0) this.#wake();
    else this.#timer = after(left, this.#wake);
  }

  #onWakeUp(wakeUp: WakeUp): void {
    if (wakeUp === 'look') {
      this.wakeIn(0);
    } else if ('hintedTo' in wakeUp) {
      // Somebody has the key: an offer that was made before this is over.
      this.#offeredUntil = 0;
      if (wakeUp.hintedTo === this.#holder) this.#hinted();
    } else if (wakeUp.offeredTo === this.#holder) {
      this.#offeredUntil = now() + wakeUp.expiresIn;
      this.wakeIn(0);
    } else {
      this.#offeredUntil = 0;
      // If that process does not take it, the key becomes free without a message. On a busy key, the next offer comes before,
      // so the look has an upper bound: a place that was lost with the store's queue would otherwise never be taken again.
      this.wakeIn(Math.min(wakeUp.expiresIn + 1, Math.max(1, this.#lookedAt + LONGEST_DELAY - now())));
    }
  }
}
