import { after, OVERDUE, stop, type Timer, within } from '../base/clock.js';
import type { Query } from '../database/database.js';
import { isStatementError } from './errors.js';

/** Time limit of one statement, including connecting. A hung connection is closed and replaced; milliseconds. */
const ANSWER_TIME = 3_000;
/**
 * An unused connection is closed after this time, because it is seldom needed and must not keep the process alive;
 * milliseconds.
 */
const LINGER = 1_000;

/** A connection that belongs to nobody else. */
export interface OwnConnection {
  readonly query: Query;
  close(): Promise<void>;
}

interface Line {
  readonly connection: Promise<OwnConnection>;
  /** How many statements have no answer. */
  unanswered: number;
}

/**
 * The rescue connection, opened at its first use, separate from the client's pool. Finding out an outcome or
 * ending a backend must not wait for a pool that is full or hung.
 */
export class Rescue {
  readonly #open: () => Promise<OwnConnection>;
  #line: Line | undefined;
  #closing: Timer | undefined;

  constructor(open: () => Promise<OwnConnection>) {
    this.#open = open;
  }

  readonly query: Query = async (text, values) => {
    stop(this.#closing);
    this.#line ??= { connection: this.#open(), unanswered: 0 };
    const line = this.#line;
    line.unanswered++;
    try {
      const sent = line.connection.then((open) => open.query(text, values));
      const answer = await within(sent, ANSWER_TIME);
      if (answer !== OVERDUE) return answer;
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
function closeUnused({ connection, unanswered }: Line): void {
  if (unanswered === 0) connection.then((open) => open.close()).catch(() => {});
}

/** The settings for a connection of its own, from those of a pool. */
export function ownSettings(settings: object): object {
  // Property descriptors: pg makes the password of a pool's settings non-enumerable, so a spread would miss it, and a setting that
  // is frozen or a getter could not be assigned to.
  const own = { max: 1, connectionTimeoutMillis: ANSWER_TIME, allowExitOnIdle: true };
  const descriptors = { ...Object.getOwnPropertyDescriptors(settings), ...Object.getOwnPropertyDescriptors(own) };
  return Object.defineProperties({}, descriptors);
}
