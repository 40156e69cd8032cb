import { NotRun, type Statement, type TextRow } from '../fence/database.js';

/** The part of pg's connection that a flight writes to: the messages of the extended protocol. */
interface Wire {
  readonly stream: { cork?(): void; uncork?(): void };
  parse(statement: { text: string; name?: string }): void;
  bind(portal: { values?: readonly (string | null)[]; statement?: string }): void;
  execute(portal: object): void;
  flush(): void;
  sync(): void;
}

/** pg's `Query`, as far as a flight rests on it: with `pipeline` pg takes nothing else. */
export type QueryClass = new (config: { text: string }) => object;

/** A statement on its way. */
interface Leg extends Statement {
  /** Has its answer sent before the next statement runs, which may wait. */
  readonly flush: boolean;
  readonly rows: TextRow[];
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Its rows and its command tag. */
export interface Answer {
  readonly rows: readonly TextRow[];
  readonly tag: string;
}

/** What pg calls on a query that it was given as an object. */
interface Flight {
  /** An answer for each statement. */
  readonly answers: readonly Promise<Answer>[];
}

/** `onEnd`: called when the server is ready again, or once a statement has failed. */
export type FlightClass = new (statements: readonly Statement[], onEnd: (failed: boolean) => void) => Flight;

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
    readonly answers: readonly Promise<Answer>[];
    readonly #legs: readonly Leg[];
    readonly #onEnd: (failed: boolean) => void;
    #at = 0;
    #isOver = false;

    constructor(statements: readonly Statement[], onEnd: (failed: boolean) => void) {
      super({ text: '' });
      this.#onEnd = onEnd;
      const legs: Leg[] = [];
      this.answers = statements.map(
        ({ text, values }, index) =>
          new Promise<Answer>((resolve, reject) => {
            const flush = index < statements.length - 1 && !text.startsWith('BEGIN');
            legs.push({ text, values, flush, rows: [], resolve, reject });
          }),
      );
      this.#legs = legs;
      // Whoever asked for an answer hears of its failure; not everybody asks for every answer.
      for (const answer of this.answers) answer.catch(() => {});
    }

    submit(wire: Wire): null {
      wire.stream.cork?.();
      try {
        for (const { text, values, flush } of this.#legs) {
          wire.parse({ text });
          wire.bind({ values });
          wire.execute({});
          if (flush) wire.flush();
        }
        wire.sync();
      } finally {
        wire.stream.uncork?.();
      }
      return null;
    }

    handleRowDescription(): void {}

    handleDataRow({ fields }: { readonly fields: TextRow }): void {
      this.#legs[this.#at]?.rows.push(fields);
    }

    handleCommandComplete({ text }: { readonly text: string }): void {
      const leg = this.#legs[this.#at++];
      leg?.resolve({ rows: leg.rows, tag: text });
    }

    handleReadyForQuery(): void {
      this.#end(false);
    }

    /** Once: a driver may tell the end of a flight that has failed, too. */
    #end(failed: boolean): void {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#onEnd(failed);
    }

    /** An error of the server, behind which it skips all to the Sync; or one of the connection. */
    handleError(error: unknown): void {
      const [failed, ...skipped] = this.#legs.slice(this.#at);
      this.#at = this.#legs.length;
      failed?.reject(error);
      for (const leg of skipped) leg.reject(new NotRun('a statement before it failed', { cause: error }));
      this.#end(true);
    }
  };
}
