import { Reply } from '../base/reply.js';
import { NotRun, type Statement, type StatementResult, type TextRow } from '../database/database.js';
import { FLUSH, messagesOf, type Parsing, SYNC } from './messages.js';

/** The part of pg's connection that a flight writes to. */
interface Wire {
  readonly stream: { readonly writable: boolean; write(messages: Buffer): unknown };
}

/** pg's `Query`, as far as a flight rests on it: with `pipeline` pg takes nothing else. */
export type QueryClass = new (config: { text: string }) => object;

/** Where a flight is sent from. */
export interface Departure {
  parsingOf(statement: Statement): Parsing;
  /** A statement has been answered that was sent under its name. */
  learn(name: string): void;
  /** What a statement has failed with that was sent under its name, as it is told. */
  errorOf(error: unknown): unknown;
  /** The server is ready again, or a statement has failed. */
  onEnd(failed: boolean): void;
}

/** What pg calls on a query that it was given as an object. */
interface Flight {
  /** One for each statement. */
  readonly replies: readonly Reply<StatementResult>[];
}

export type FlightClass = new (statements: readonly Statement[], from: Departure) => Flight;

const classes = new WeakMap<QueryClass, FlightClass>();

/**
 * Statements that leave in one write and are answered one by one, in their order. One Sync ends them, so where one fails
 * Postgres skips the rest: none runs outside the transaction that a statement before it was to begin.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-PIPELINING
 */
export function flightClass(Query: QueryClass): FlightClass {
  let known = classes.get(Query);
  if (known === undefined) {
    known = makeFlightClass(Query);
    classes.set(Query, known);
  }
  return known;
}

function makeFlightClass(Query: QueryClass): FlightClass {
  return class extends Query implements Flight {
    readonly replies: readonly Reply<StatementResult>[];
    readonly #statements: readonly Statement[];
    readonly #from: Departure;
    #named: boolean[] = [];
    #rows: TextRow[] = [];
    #at = 0;
    #isOver = false;

    constructor(statements: readonly Statement[], from: Departure) {
      super({ text: '' });
      this.#from = from;
      this.#statements = statements;
      this.replies = statements.map(() => new Reply<StatementResult>());
    }

    submit({ stream }: Wire): null {
      const buffers: Buffer[] = [];
      this.#statements.forEach((statement, index) => {
        const parsing = this.#from.parsingOf(statement);
        this.#named.push(parsing !== 'unnamed');
        buffers.push(messagesOf(statement, parsing));
        // Has its answer sent before the next statement runs, which may wait.
        const isLast = index === this.#statements.length - 1;
        if (!isLast && !statement.text.startsWith('BEGIN')) buffers.push(FLUSH);
      });
      buffers.push(SYNC);
      // One that is closed says so by an event.
      if (stream.writable) stream.write(Buffer.concat(buffers));
      return null;
    }

    handleRowDescription(): void {}

    handleDataRow({ fields }: { readonly fields: TextRow }): void {
      this.#rows.push(fields);
    }

    handleCommandComplete({ text }: { readonly text: string }): void {
      const at = this.#at++;
      const name = this.#statements[at]?.name;
      if (name !== undefined && this.#named[at]) this.#from.learn(name);
      const rows = this.#rows;
      this.#rows = [];
      this.replies[at]?.resolve({ rows, tag: text });
    }

    handleReadyForQuery(): void {
      this.#end(false);
    }

    /** Once: a driver may tell the end of a flight that has failed, too. */
    #end(failed: boolean): void {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#from.onEnd(failed);
    }

    /** An error of the server, behind which it skips all to the Sync; or one of the connection. */
    handleError(error: unknown): void {
      const at = this.#at;
      this.#at = this.replies.length;
      const [failed, ...skipped] = this.replies.slice(at);
      failed?.reject(this.#named[at] ? this.#from.errorOf(error) : error);
      for (const reply of skipped) reply.reject(new NotRun('a statement before it failed', { cause: error }));
      this.#end(true);
    }
  };
}
