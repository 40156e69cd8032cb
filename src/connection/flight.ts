import { onceForEach } from '../base/once-for-each.js';
import { EXECUTE, FLUSH, Messages, SYNC } from '../base/postgres-messages.js';
import { Reply } from '../base/reply.js';
import { NotRun, type Statement, type StatementResult, type TextRow } from '../database/database.js';
import type { QueryClass, Wire } from './pg.js';

/** What a flight needs of the connection that it is sent on. */
export interface FlightContext {
  readonly client: object;
  readonly prepared: Prepared;
  /** Called when the server is ready for the next query, or when a statement has failed. */
  onEnd(failed: boolean): void;
}

/** A query object of pg for a flight. */
interface Flight {
  /** One reply for each statement. */
  readonly replies: readonly Reply<StatementResult>[];
}

export type FlightClass = new (statements: readonly Statement[], from: FlightContext) => Flight;

/**
 * Statements that are sent in one write and answered one by one, in their order. A single Sync ends them, so if one
 * fails, Postgres skips the rest: no statement runs outside the transaction that an earlier BEGIN should have begun.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-PIPELINING
 */
export const flightClass = onceForEach((Query: QueryClass): FlightClass => {
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
      super(statements.map(({ text }) => text).join('; '));
      this.#context = from;
      this.#statements = statements;
      this.replies = statements.map(() => new Reply<StatementResult>());
    }

    submit({ stream }: Wire): null {
      const messages = new Messages();
      for (const [at, statement] of this.#statements.entries()) {
        const parsing = this.#context.prepared.parsingOf(this.#context.client, statement);
        this.#named.push(parsing !== 'unnamed');
        writeStatement(messages, statement, parsing);
        const next = this.#statements[at + 1];
        // A Flush makes the server send this answer before the next statement runs, which may wait.
        if (next !== undefined && !statement.text.startsWith('BEGIN')) messages.add(FLUSH);
      }
      messages.add(SYNC);
      // A closed stream is reported by pg's error event.
      if (stream.writable) stream.write(messages.bytes);
      return null;
    }

    handleRowDescription(): void {}

    handleDataRow({ fields }: { readonly fields: TextRow }): void {
      this.#rows.push(fields);
    }

    handleCommandComplete({ text }: { readonly text: string }): void {
      const at = this.#at++;
      const name = this.#statements[at]?.name;
      if (name !== undefined && this.#named[at]) this.#context.prepared.markPrepared(this.#context.client, name);
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
      const cause = this.#named[at] ? this.#context.prepared.errorOf(error) : error;
      failed?.reject(cause);
      for (const reply of skipped) reply.reject(new NotRun('a statement before it failed', { cause }));
      this.#end(true, error);
    }
  };
});

/**
 * How a statement is sent. `unnamed`: parsed each time. `named`: parsed under its name, for later use. `known`: by the
 * name, without parsing.
 */
export type Parsing = 'unnamed' | 'named' | 'known';

/** SQLSTATEs: no such prepared statement; a prepared statement of that name exists. */
const LOST: ReadonlySet<unknown> = new Set(['26000', '42P05']);

/**
 * Remembers which connections of a pool have prepared which statement, so that the server need not parse it again. A
 * pooler in transaction mode changes the server connection between transactions, so a name may be unknown there. After
 * the first such error, the pool's statements are sent unnamed.
 */
export class Prepared {
  readonly #namesOf = onceForEach((_client: object) => new Set<string>());
  #isOff = false;

  parsingOf(client: object, { name }: Statement): Parsing {
    if (name === undefined || this.#isOff) return 'unnamed';
    return this.#namesOf(client).has(name) ? 'known' : 'named';
  }

  /** Called when a statement that was sent under its name has been answered. */
  markPrepared(client: object, name: string): void {
    this.#namesOf(client).add(name);
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

/** Parse, Bind and Execute. */
export function writeStatement(messages: Messages, { text, name = '', values }: Statement, parsing: Parsing): void {
  const called = parsing === 'unnamed' ? '' : name;
  // Parse fails if the name is in use, as it is after a lost answer.
  if (parsing === 'named') messages.close(called);
  if (parsing !== 'known') messages.parse(called, text);
  messages.bind(called, values);
  messages.add(EXECUTE);
}
