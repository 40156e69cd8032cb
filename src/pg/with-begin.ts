import pg from 'pg';

/** The part of pg's connection that is used here: the messages of the extended protocol, as they are written. */
interface Wire {
  readonly stream: { cork?(): void; uncork?(): void };
  parse(statement: { text: string }): void;
  bind(portal: object): void;
  execute(portal: object): void;
}

/** What pg's query has beside what its types tell. */
interface Inside {
  submit(wire: Wire): Error | null;
  handleCommandComplete(message: unknown, wire: Wire): void;
}

const inside = pg.Query.prototype as unknown as Inside;

/**
 * BEGIN (and what is said of the transaction with it) and a statement, in one flight. One Sync ends them all, so if
 * BEGIN fails, Postgres skips the statement: it can never run by itself, outside a transaction.
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-PIPELINING
 */
export class WithBegin extends pg.Query {
  readonly #first: readonly string[];
  #answered = 0;

  constructor(
    first: readonly string[],
    query: pg.QueryConfig,
    callback: (error: Error | null, result: unknown) => void,
  ) {
    // pg calls it with null where there is no error.
    super(query, undefined, callback as (error: Error | undefined, result: unknown) => void);
    this.#first = first;
  }

  override submit = (connection: unknown): Error | null => {
    const wire = connection as Wire;
    wire.stream.cork?.();
    try {
      for (const text of this.#first) {
        wire.parse({ text });
        wire.bind({});
        wire.execute({});
      }
      return inside.submit.call(this, wire);
    } finally {
      wire.stream.uncork?.();
    }
  };

  /** In messages of its own, also where it has no values: a simple query would end the flight. */
  requiresPreparation(): boolean {
    return true;
  }

  /** The answers to what came first are not the caller's. */
  handleCommandComplete(message: unknown, wire: Wire): void {
    if (this.#answered++ < this.#first.length) return;
    inside.handleCommandComplete.call(this, message, wire);
  }
}
