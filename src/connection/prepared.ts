import { NotRun, type Statement } from '../database/database.js';
import type { Parsing } from './messages.js';

/** SQLSTATEs: no such prepared statement; a prepared statement of that name exists. */
const LOST: ReadonlySet<unknown> = new Set(['26000', '42P05']);

/**
 * Remembers which connections of a pool have prepared which statement, so that the server need not parse it again. A
 * pooler in transaction mode changes the server connection between transactions, so a name may be unknown there. After
 * the first such error, the pool's statements are sent unnamed.
 */
export class Prepared {
  readonly #names = new WeakMap<object, Set<string>>();
  #isOff = false;

  parsingOf(client: object, { name }: Statement): Parsing {
    if (name === undefined || this.#isOff) return 'unnamed';
    return this.#names.get(client)?.has(name) ? 'known' : 'named';
  }

  /** Called when a statement that was sent under its name has been answered. */
  markPrepared(client: object, name: string): void {
    let names = this.#names.get(client);
    if (names === undefined) {
      names = new Set();
      this.#names.set(client, names);
    }
    names.add(name);
  }

  /**
   * Converts the error of a statement that was sent under its name. If the name was the cause, the statement can be
   * sent again.
   */
  errorOf(error: unknown): unknown {
    if (!LOST.has((error as { code?: unknown }).code)) return error;
    this.#isOff = true;
    return new NotRun('the server did not know the statement by its name');
  }
}
