import { Reply } from '../base/reply.js';
import { NotRun, type Statement, type StatementResult, type TextRow } from '../database/database.js';
import { FLUSH, messagesOf, type Parsing, SYNC } from './messages.js';

/** The part of pg's connection that a flight writes to. */
interface Wire {
  readonly stream: { readonly writable: boolean; write(messages: Buffer): unknown };
}

/** pg's `Query` class. With `pipeline`, pg accepts only instances of it. */
export type QueryClass = new (config: {
  text: string;
}) => {
  /** pg sets it to the second argument of `client.query`. */
  callback?: ((error?: unknown) => void) | undefined;
};

/** What a flight needs of the connection that it is sent on. */
export interface FlightContext {
  parsingOf(statement: Statement): Parsing;
  /** Called when a statement that was sent under its name has been answered. */
  markPrepared(name: string): void;
  /** Converts the error of a statement that was sent under its name. */
  errorOf(error: unknown): unknown;
  /** Called when the server is ready for the next query, or when a statement has failed. */
  onEnd(failed: boolean): void;
}

/** A query object with the methods that pg calls. */
interface Flight {
  /** One reply for each statement. */
  readonly replies: readonly Reply<StatementResult>[];
}

export type FlightClass = new (statements: readonly Statement[], from: FlightContext) => Flight;

const classes = new WeakMap<QueryClass, FlightClass>();

/**
 * Statements that are sent in one write and answered one by one, in their order. A single Sync ends them, so if one
 * fails, Postgres skips the rest: no statement runs outside the transaction that an earlier BEGIN should have begun.
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
    readonly #context: FlightContext;
    #named: boolean[] = [];
    #rows: TextRow[] = [];
    #at = 0;
    #isOver = false;

    constructor(statements: readonly Statement[], from: FlightContext) {
      // pg does not send this text. Tracers of pg show it, and name the span by its first word.
      super({ text: statements.map(({ text }) => text).join('; ') });
      this.#context = from;
      this.#statements = statements;
      this.replies = statements.map(() => new Reply<StatementResult>());
    }

    submit({ stream }: Wire): null {
      const buffers: Buffer[] = [];
      this.#statements.forEach((statement, index) => {
        const parsing = this.#context.parsingOf(statement);
        this.#named.push(parsing !== 'unnamed');
        buffers.push(messagesOf(statement, parsing));
        // A Flush makes the server send this answer before the next statement runs, which may wait.
        const isLast = index === this.#statements.length - 1;
        if (!isLast && !statement.text.startsWith('BEGIN')) buffers.push(FLUSH);
      });
      buffers.push(SYNC);
      // A closed stream is reported by pg's error event.
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
      if (name !== undefined && this.#named[at]) this.#context.markPrepared(name);
      const rows = this.#rows;
      this.#rows = [];
      this.replies[at]?.resolve({ rows, tag: text });
    }

    handleReadyForQuery(): void {
      this.#end(false);
    }

    /** Once only: pg may call handleReadyForQuery after handleError. */
    #end(failed: boolean, error?: unknown): void {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#context.onEnd(failed);
      this.callback?.(error);
    }

    /** An error of the server, which then skips all messages up to the Sync, or an error of the connection. */
    handleError(error: unknown): void {
      const at = this.#at;
      this.#at = this.replies.length;
      const [failed, ...skipped] = this.replies.slice(at);
      failed?.reject(this.#named[at] ? this.#context.errorOf(error) : error);
      for (const reply of skipped) reply.reject(new NotRun('a statement before it failed', { cause: error }));
      this.#end(true, error);
    }
  };
}
