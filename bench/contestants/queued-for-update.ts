import { type Contestant, nothing } from './contestant.js';
import { sellForUpdate } from './for-update.js';

/** The callers of one process one after the other, by key. */
class KeyQueue {
  readonly #last = new Map<string, Promise<void>>();

  async run(key: string, turn: () => Promise<void>): Promise<void> {
    const mine = (this.#last.get(key) ?? Promise.resolve()).then(turn);
    const settled = mine.then(nothing, nothing);
    this.#last.set(key, settled);
    try {
      await mine;
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    }
  }
}

/** The honest yardstick: it needs no Redis. */
export const queuedForUpdate: Contestant = {
  name: 'queue + FOR UPDATE',
  waits: 'process',
  shop: 'plain',
  open({ prisma }) {
    const queue = new KeyQueue();
    return { sell: (sale) => queue.run(sale.key, () => sellForUpdate(prisma, sale)), close: nothing };
  },
};
