/** A caller's place at the head of its key's queue. */
export interface Turn {
  /** Lets the next caller go on. Idempotent. */
  leave(): void;
}

/** Calls a waiting caller: it is its turn. */
type Waiter = (turn: Turn) => void;

/**
 * First come, first served among the callers of one process: only the head of a key's queue talks to the store.
 * A turn lasts until its lease is given back, so the next caller's first look comes right after that release.
 */
export class LocalQueue {
  /** Per key: those who wait behind the one whose turn it is. */
  readonly #waiting = new Map<string, Waiter[]>();

  /** Resolves when it is the caller's turn, to `undefined` if `giveUp` resolves first. */
  async enter(key: string, giveUp: () => Promise<void>): Promise<Turn | undefined> {
    const queue = this.#waiting.get(key);
    if (queue === undefined) {
      this.#waiting.set(key, []);
      return this.#turn(key);
    }
    let go: Waiter = () => {};
    const called = new Promise<Turn>((resolve) => {
      go = resolve;
      queue.push(go);
    });
    const turn = await Promise.race([called, giveUp()]);
    if (turn !== undefined) return turn;
    const place = queue.indexOf(go);
    if (place >= 0) queue.splice(place, 1);
    // Called in the same moment in which we gave up: the turn is ours to pass on.
    else (await called).leave();
    return undefined;
  }

  /** Whether a caller would have its turn at once. */
  isFree(key: string): boolean {
    return !this.#waiting.has(key);
  }

  /** Callers of this process that wait for the key. */
  waiting(key: string): number {
    return this.#waiting.get(key)?.length ?? 0;
  }

  #turn(key: string): Turn {
    let left = false;
    return {
      leave: () => {
        if (left) return;
        left = true;
        const next = this.#waiting.get(key)?.shift();
        if (next) next(this.#turn(key));
        else this.#waiting.delete(key);
      },
    };
  }
}
