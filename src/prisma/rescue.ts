import { after, OVERDUE, stop, type Timer, within } from '../base/clock.js';
import { type AdapterTransaction, queryOf, rowsOf } from '../connection/adapter-connection.js';
import type { Query, Row } from '../database/database.js';
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

/**
 * The rescue connection: a single one, opened at its first use, separate from the pool. Finding out an outcome or
 * ending a backend must not wait for a pool that is full or hung.
 */
export class Rescue {
  readonly #factory: AdapterFactory;
  #adapter: Promise<RescueAdapter> | undefined;
  #closing: Timer | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #asked = 0;
  /** The number of the newest statement that was queued when an unanswered one was sent: all up to it fail at once. */
  #silentUpTo = 0;

  constructor(factory: AdapterFactory) {
    this.#factory = factory;
  }

  /** Sends one statement at a time, in the order of the calls. */
  readonly query: Query = (text, values) => {
    const mine = ++this.#asked;
    const answer = this.#last.then(() => {
      // It was queued before the unanswered statement was sent, so it fails with it.
      if (mine <= this.#silentUpTo) throw silent();
      return this.#ask(text, values);
    });
    this.#last = answer.catch(() => {});
    return answer;
  };

  close(): void {
    stop(this.#closing);
    const adapter = this.#adapter;
    this.#adapter = undefined;
    adapter?.then((open) => open.dispose()).catch(() => {});
  }

  async #ask(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    stop(this.#closing);
    const askedBefore = this.#asked;
    try {
      this.#adapter ??= this.#factory.connect() as Promise<RescueAdapter>;
      const answer = await within(this.#send(this.#adapter, text, values), ANSWER_TIME);
      if (answer === OVERDUE) {
        this.#silentUpTo = askedBefore;
        throw silent();
      }
      return answer;
    } catch (error) {
      this.close();
      throw error;
    } finally {
      this.#closing = after(LINGER, () => this.close()).unref();
    }
  }

  async #send(adapter: Promise<RescueAdapter>, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return rowsOf(await (await adapter).queryRaw(queryOf(text, values)));
  }
}

function silent(): Error {
  return new Error(`Postgres did not answer the rescue connection within ${ANSWER_TIME} ms`);
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
