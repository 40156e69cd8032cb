import { after, OVERDUE, stop, type Timer, within } from '../base/clock.js';
import { type AdapterTransaction, queryOf, rowsOf } from '../connection/adapter-connection.js';
import type { Query } from '../database/database.js';
import { isStatementError } from './errors.js';
import type { AdapterFactory } from './internals.js';

/** Time limit of one statement, including connecting. A hung connection is closed and replaced; milliseconds. */
const ANSWER_TIME = 3_000;
/**
 * An unused connection is closed after this time, because it is seldom needed and must not keep the process alive;
 * milliseconds.
 */
const LINGER = 1_000;

interface RescueAdapter extends Pick<AdapterTransaction, 'queryRaw'> {
  dispose(): Promise<void>;
}

interface Line {
  readonly adapter: Promise<RescueAdapter>;
  /** How many statements have no answer. */
  unanswered: number;
}

/**
 * The rescue connection, opened at its first use, separate from the client's pool. Finding out an outcome or
 * ending a backend must not wait for a pool that is full or hung.
 */
export class Rescue {
  readonly #factory: AdapterFactory;
  #line: Line | undefined;
  #closing: Timer | undefined;

  constructor(factory: AdapterFactory) {
    this.#factory = factory;
  }

  readonly query: Query = async (text, values) => {
    stop(this.#closing);
    this.#line ??= { adapter: this.#factory.connect() as Promise<RescueAdapter>, unanswered: 0 };
    const line = this.#line;
    line.unanswered++;
    try {
      const sent = line.adapter.then((open) => open.queryRaw(queryOf(text, values)));
      const answer = await within(sent, ANSWER_TIME);
      if (answer !== OVERDUE) return rowsOf(answer);
      throw new Error(`Postgres did not answer the rescue connection within ${ANSWER_TIME} ms`);
    } catch (error) {
      // The next statement gets another connection. Those that are queued for this one have a time limit of their own.
      if (this.#line === line && !isStatementError(error)) this.#line = undefined;
      throw error;
    } finally {
      line.unanswered--;
      if (this.#line !== line) closeUnused(line);
      else if (line.unanswered === 0) this.#closing = after(LINGER, () => this.close()).unref();
    }
  };

  close(): void {
    stop(this.#closing);
    const line = this.#line;
    this.#line = undefined;
    if (line !== undefined) closeUnused(line);
  }
}

/** A pool that is ended would not serve what is queued for it. */
function closeUnused({ adapter, unanswered }: Line): void {
  if (unanswered === 0) adapter.then((open) => open.dispose()).catch(() => {});
}

/**
 * Makes the default factory for the rescue connection: the client's own factory with a separate pool. A `PrismaPg` that
 * was given a pool would use that same pool.
 */
export function rescueFactory(factory: AdapterFactory): AdapterFactory {
  const { config, options } = factory as { config?: object; options?: unknown };
  if (config === undefined) return factory;
  const make = factory.constructor as new (config: object, options: unknown) => AdapterFactory;
  // Property descriptors: pg makes the password of a pool's settings non-enumerable, so a spread would miss it, and a setting that
  // is frozen or a getter could not be assigned to.
  const own = { max: 1, connectionTimeoutMillis: ANSWER_TIME, allowExitOnIdle: true };
  const settings = { ...Object.getOwnPropertyDescriptors(config), ...Object.getOwnPropertyDescriptors(own) };
  return new make(Object.defineProperties({}, settings), options);
}
