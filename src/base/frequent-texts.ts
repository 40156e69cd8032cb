import { dropOldest } from './drop-oldest.js';

/** From which use on a text counts as frequent. */
const OFTEN = 5;
/** How many texts are counted, and how long they are at most, in characters: their memory is bounded. */
const MOST_COUNTED = 200;
const LONGEST = 4_000;

/** Tells which texts are used often. Forgets those whose last use is the longest ago. */
export class FrequentTexts {
  readonly #uses = new Map<string, number>();

  /** Counts a use. Returns whether the text has been used often. */
  countUse(text: string): boolean {
    if (text.length > LONGEST) return false;
    const uses = (this.#uses.get(text) ?? 0) + 1;
    this.#uses.delete(text);
    this.#uses.set(text, uses);
    if (this.#uses.size > MOST_COUNTED) dropOldest(this.#uses);
    return uses >= OFTEN;
  }
}
