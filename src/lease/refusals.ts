import { turnOfLoop } from '../base/clock.js';
import { MOST_REFUSALS, type Refusal } from '../base/refusal.js';
import type { LeaseStore } from './store.js';

/**
 * Notes refused writes in the store, so that people see those of all processes in one place. Nothing waits for it and a
 * failure is silent. One command is under way at a time: while many writes are refused, the next one takes all that came
 * meanwhile, and of more than the store keeps only the last.
 */
export class Refusals {
  readonly #store: Pick<LeaseStore, 'noteRefusals'>;
  #pending: Refusal[] = [];
  #isSending = false;

  constructor(store: Pick<LeaseStore, 'noteRefusals'>) {
    this.#store = store;
  }

  /** Never throws. */
  note(refusal: Refusal): void {
    this.#pending.push(refusal);
    if (this.#pending.length > MOST_REFUSALS) this.#pending.shift();
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    // The caller that was refused goes on first.
    await turnOfLoop();
    while (this.#pending.length > 0) {
      try {
        await this.#store.noteRefusals(this.#pending.splice(0));
      } catch {
        // Redis is away, or this user may not do it. The caller has the error of its write.
      }
    }
    this.#isSending = false;
  }
}
