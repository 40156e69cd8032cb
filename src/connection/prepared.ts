import { NotRun, type Statement } from '../database/database.js';
import type { Parsing } from './messages.js';

/** No such prepared statement; one of that name is there already. */
const LOST: ReadonlySet<unknown> = new Set(['26000', '42P05']);

/**
 * Which connections of a pool know which statement by name, so that the server need not parse it again. Behind a pooler
 * that has another server for each transaction none can know it: that shows in an error, and from then on the pool's
 * statements go out without names.
 */
export class Prepared {
  readonly #names = new WeakMap<object, Set<string>>();
  #isOff = false;

  parsingOf(client: object, { name }: Statement): Parsing {
    if (name === undefined || this.#isOff) return 'unnamed';
    return this.#names.get(client)?.has(name) ? 'known' : 'named';
  }

  /** A statement has been answered that was sent under its name. */
  learn(client: object, name: string): void {
    let names = this.#names.get(client);
    if (names === undefined) {
      names = new Set();
      this.#names.set(client, names);
    }
    names.add(name);
  }

  /** What a statement has failed with that was sent under its name: it is to be sent again, where the name was all. */
  errorOf(error: unknown): unknown {
    if (!LOST.has((error as { code?: unknown }).code)) return error;
    this.#isOff = true;
    return new NotRun('the server did not know the statement by its name');
  }
}
