import { now } from '../base/clock.js';
import type { Query } from '../database/database.js';
import { TOUCH } from '../database/sql.js';
import type { HandleState } from '../options/options.js';

interface OpenHandle {
  close(): Promise<void>;
  toJSON(): HandleState;
}

/**
 * How often the key rows of open handles are touched, so that `fenced-lock gc` does not delete them as idle after a
 * day; milliseconds.
 */
const TOUCH_EVERY = 3_600_000;
/** Pause before a failed touch is tried again; milliseconds. */
const TRY_AGAIN = 60_000;
/** How many handles one statement touches. */
const PAGE = 100;

/** The handles of one client that have not been released. */
export class OpenHandles {
  readonly #open = new Set<OpenHandle>();
  #touchAt = Number.NEGATIVE_INFINITY;

  add<Handle extends OpenHandle>(handle: Handle): Handle {
    this.#open.add(handle);
    return handle;
  }

  delete(handle: OpenHandle): void {
    this.#open.delete(handle);
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open].map((handle) => handle.close()));
  }

  /**
   * Called at each renewal of any handle. Without it, a handle that begins no transaction for a day would lose its
   * key's row to `fenced-lock gc`, and its token would be refused.
   */
  beat(query: Query): void {
    if (now() < this.#touchAt) return;
    this.#touchAt = now() + TOUCH_EVERY;
    this.#touch(query).catch(() => {
      this.#touchAt = now() + TRY_AGAIN;
    });
  }

  async #touch(query: Query): Promise<void> {
    const states = [...this.#open].map((handle) => handle.toJSON());
    const [keys, holders, tokens] = (['keys', 'holders', 'tokens'] as const).map((part) =>
      states.flatMap((state) => state[part]),
    ) as [string[], string[], string[]];
    for (let from = 0; from < keys.length; from += PAGE) {
      const page = [keys, holders, tokens].map((all) => JSON.stringify(all.slice(from, from + PAGE)));
      await query(TOUCH, page);
    }
  }
}
