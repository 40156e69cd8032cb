export type Row = Readonly<Record<string, unknown>>;

/** Runs one statement with bound values. */
export type Query = (text: string, values: readonly unknown[]) => Promise<readonly Row[]>;

/** One operation of the database client, on its way to the database. */
export interface Operation {
  /** `undefined` for raw SQL. */
  readonly model: string | undefined;
  readonly name: string;
  readonly args: unknown;
  /** Sends it, with these arguments instead. */
  send(args: unknown): Promise<unknown>;
  /** Sends another operation of the same model, in the same transaction, past the hook. */
  sibling(name: string, args: unknown): Promise<unknown>;
}

/** Sees every operation of a transaction just before it is sent; answers in its place. */
export type Hook = (operation: Operation) => Promise<unknown>;

export interface TransactionOptions {
  /** How long to wait for a connection of the pool; milliseconds. */
  readonly maxWait: number | undefined;
  readonly isolationLevel: string | undefined;
}

/** What the fence needs of a database client, whose transactions it passes through as `Tx`. */
export interface Database<Tx> {
  /**
   * One transaction: COMMIT if `body` resolves, ROLLBACK if it rejects, nothing before it settles. `hook` sees the
   * caller's operations on `tx`; `query` passes it by.
   */
  transaction(options: TransactionOptions, hook: Hook, body: (tx: Tx, query: Query) => Promise<void>): Promise<void>;
  /** A connection of its own: a full or hung pool must not keep us from finding out or ending anything. */
  readonly rescue: Query;
  /** The SQLSTATE that a rejection carries, if it carries one. */
  sqlState(error: unknown): string | undefined;
  /** Whether it says that no row matched. */
  isNoMatch(error: unknown): boolean;
}
