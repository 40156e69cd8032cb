import { after, OVERDUE, type Timer, within } from '../base/clock.js';
import type { Query, Row } from '../database/database.js';
import type { AdapterFactory } from './internals.js';

/** How long one statement may take, the connection included; a hung one is given up and another opened. */
const ANSWER_TIME = 3_000;
/** An unused connection is closed after this time: it is seldom needed, and must not keep the process alive. */
const LINGER = 1_000;

interface RescueAdapter {
  queryRaw(query: { sql: string; args: unknown[]; argTypes: unknown[] }): Promise<{
    columnNames: string[];
    rows: unknown[][];
  }>;
  dispose(): Promise<void>;
}

/**
 * The rescue connection: one, opened at its first use, beside the pool. What finds out an outcome or ends a
 * backend must not wait for a pool that is full, or hung for the very reason that we look into.
 */
export class Rescue {
  readonly #factory: AdapterFactory;
  #adapter: Promise<RescueAdapter> | undefined;
  #closing: Timer | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(factory: AdapterFactory) {
    this.#factory = factory;
  }

  /** One statement at a time, in the order of the calls. */
  readonly query: Query = (text, values) => {
    const answer = this.#last.then(() => this.#ask(text, values));
    this.#last = answer.catch(() => {});
    return answer;
  };

  close(): void {
    this.#closing?.stop();
    const adapter = this.#adapter;
    this.#adapter = undefined;
    adapter?.then((open) => open.dispose()).catch(() => {});
  }

  async #ask(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    this.#closing?.stop();
    try {
      this.#adapter ??= this.#factory.connect() as Promise<RescueAdapter>;
      const answer = await within(this.#send(this.#adapter, text, values), ANSWER_TIME);
      if (answer === OVERDUE) throw new Error(`Postgres did not answer the rescue connection within ${ANSWER_TIME} ms`);
      return answer;
    } catch (error) {
      this.close();
      throw error;
    } finally {
      this.#closing = after(LINGER, () => this.close()).unref();
    }
  }

  async #send(adapter: Promise<RescueAdapter>, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const argTypes = values.map(() => ({ scalarType: 'unknown', arity: 'scalar' }));
    const result = await (await adapter).queryRaw({ sql: text, args: [...values], argTypes });
    return result.rows.map((row) => Object.fromEntries(result.columnNames.map((name, index) => [name, row[index]])));
  }
}

/**
 * A factory for the rescue connection where the caller gave none: of the same make and settings as the client's,
 * with a pool of its own. A `PrismaPg` that was given a pool would hand out that same pool.
 */
export function rescueFactory(factory: AdapterFactory): AdapterFactory {
  const { config, options } = factory as { config?: object; options?: unknown };
  if (config === undefined) return factory;
  const make = factory.constructor as new (config: object, options: unknown) => AdapterFactory;
  // Descriptors, because pg keeps the password of a pool's settings where a spread does not see it.
  const own = Object.defineProperties({}, Object.getOwnPropertyDescriptors(config));
  return new make(Object.assign(own, { max: 1, connectionTimeoutMillis: ANSWER_TIME, allowExitOnIdle: true }), options);
}
