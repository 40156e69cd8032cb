import { now } from '../base/clock.js';
import type { SeenHolder } from '../base/errors.js';
import type { AcquireResult, WakeUp } from './store.js';

/** Who has a key, as far as looks and wake-ups tell. The error of a timed-out caller names it. */
export class PresentHolder {
  #id: string | undefined;
  #process: string | undefined;
  /** When this process first heard of the present holder. */
  #heardAt = 0;
  #expiresAt = 0;

  /** A look was answered. */
  answered(answer: AcquireResult): void {
    if (answer.taken || !answer.holder) this.#id = undefined;
    else this.#note(answer.holder, answer.process, answer.expiresIn);
  }

  /** Called for a message. After an offer, the process name is unknown until the key is taken. */
  heard(wakeUp: WakeUp): void {
    if (wakeUp !== 'look' && 'turn' in wakeUp) this.#note(wakeUp.turn, undefined, wakeUp.expiresIn);
  }

  /** `undefined` where nobody is known to have it. */
  get seen(): SeenHolder | undefined {
    if (this.#id === undefined) return undefined;
    return {
      process: this.#process,
      here: false,
      heldFor: now() - this.#heardAt,
      expiresIn: Math.max(0, this.#expiresAt - now()),
    };
  }

  #note(holder: string, process: string | undefined, expiresIn: number): void {
    if (holder !== this.#id) this.#heardAt = now();
    this.#id = holder;
    this.#process = process;
    this.#expiresAt = now() + expiresIn;
  }
}
