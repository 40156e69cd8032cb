import { onceForEach } from '../base/once-for-each.js';
import { Reply } from '../base/reply.js';
import { NotRun, type Statement, type StatementResult, type TextRow } from '../database/database.js';
import { inOneWrite, type QueryClass, type Wire } from './pg.js';

/** What a flight needs of the connection that it is sent on. */
export interface FlightContext {
  /** Whether statements with a name are prepared under it, once for each connection. */
  readonly mayUseNames: boolean;
  /** Called when the server does not know a statement by its name. */
  onNamesLost(): void;
  /** Called when the server is ready for the next query, or when a statement has failed. */
  onEnd(failed: boolean): void;
}

/** A query object of pg for a flight. */
interface Flight {
  /** One reply for each statement. */
  readonly replies: readonly Reply<StatementResult>[];
}

/** SQLSTATEs: no such prepared statement; a prepared statement of that name exists. */
const NAME_LOST: ReadonlySet<unknown> = new Set(['26000', '42P05']);

/**
 * Statements that are sent in one write and answered one by one, in their order. A single Sync ends them, so if one
 * fails, Postgres skips the rest: no statement runs outside the transaction that an earlier BEGIN should have begun.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-PIPELINING
 */
export const flightClass = onceForEach(
  (Query: QueryClass): (new (statements: readonly Statement[], context: FlightContext) => Flight) =>
    class extends Query implements Flight {
      readonly replies: readonly Reply<StatementResult>[];
      readonly #statements: readonly Statement[];
      readonly #context: FlightContext;
      /** The names that the connection knows. */
      #known: Record<string, string> = {};
      #rows: TextRow[] = [];
      #at = 0;
      #isOver = false;

      constructor(statements: readonly Statement[], context: FlightContext) {
        // pg does not send this text. Tracers of pg show it, and name the span by its first word.
        super(statements.map(({ text }) => text).join('; '));
        this.#context = context;
        this.#statements = statements;
        this.replies = statements.map(() => new Reply<StatementResult>());
      }

      submit(wire: Wire): null {
        this.#known = wire.parsedStatements;
        inOneWrite(wire, (once) => {
          for (const [at, statement] of this.#statements.entries()) {
            this.#send(statement, once);
            // A Flush makes the server send this answer before the next statement runs, which may wait.
            if (at < this.#statements.length - 1 && !statement.text.startsWith('BEGIN')) once.flush();
          }
          once.sync();
        });
        return null;
      }

      #send({ text, name = '', values }: Statement, wire: Wire): void {
        const statement = this.#context.mayUseNames ? name : '';
        if (statement === '') wire.parse({ text, name: '' });
        else if (this.#known[statement] === undefined) {
          // Parse fails if the name is in use, as it is after a lost answer.
          wire.close({ type: 'S', name: statement });
          wire.parse({ text, name: statement });
        }
        wire.bind({ statement, values });
        wire.execute({});
      }

      handleRowDescription(): void {}

      handleDataRow({ fields }: { readonly fields: TextRow }): void {
        this.#rows.push(fields);
      }

      handleCommandComplete({ text: tag }: { readonly text: string }): void {
        const at = this.#at++;
        const { name, text = '' } = this.#statements[at] ?? {};
        if (name !== undefined && this.#context.mayUseNames) this.#known[name] = text;
        const rows = this.#rows;
        this.#rows = [];
        this.replies[at]?.resolve({ rows, tag });
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
        const [failed, ...skipped] = this.replies.slice(this.#at);
        this.#at = this.replies.length;
        const isNameLost = NAME_LOST.has((error as { code?: unknown }).code);
        if (isNameLost) this.#context.onNamesLost();
        const cause = isNameLost ? new NotRun('the server did not know the statement by its name') : error;
        failed?.reject(cause);
        for (const reply of skipped) reply.reject(new NotRun('a statement before it failed', { cause }));
        this.#end(true, error);
      }
    },
);
