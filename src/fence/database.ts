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
  /** Sends another operation, of this or another model, in the same transaction, past the hook. */
  run(model: string, name: string, args: unknown): Promise<unknown>;
}

/** Sees every operation of a transaction just before it is sent; answers in its place. */
export type Hook = (operation: Operation) => Promise<unknown>;

export interface TransactionOptions {
  /** How long to wait for a connection of the pool; milliseconds. */
  readonly maxWait: number | undefined;
  readonly isolationLevel: string | undefined;
}

/** A model, as far as a write of its rows can lead to rows of others. */
export interface Model {
  /** The schema of its table, where the model names one. */
  readonly schema: string | undefined;
  readonly table: string;
  /** The column of each scalar field. */
  readonly columns: ReadonlyMap<string, string>;
  readonly relations: ReadonlyMap<string, Relation>;
}

/** One end of a relation: a field of the model that it is found in. */
export interface Relation {
  /** The model at the other end. */
  readonly model: string;
  /** The field at the other end. */
  readonly back: string;
  /** What is at this end, and at the other; `undefined` where the database client does not tell. */
  readonly shape: { readonly list: boolean; readonly backList: boolean; readonly holdsKey: boolean } | undefined;
}

/** A transaction that has begun, or is about to. Exactly one of its verbs has to follow. */
export interface Opening<Tx> {
  /**
   * COMMIT if `body` resolves, ROLLBACK if it rejects, nothing before it settles. `hook` sees the caller's
   * operations on `tx`; `query` passes it by.
   */
  run(hook: Hook, body: (tx: Tx, query: Query) => Promise<void>): Promise<void>;
  /** Gives the connection back, unused. */
  discard(): void;
}

/** What the fence needs of a database client, whose transactions it passes through as `Tx`. */
export interface Database<Tx> {
  /** Fetches a connection and sends BEGIN. */
  open(options: TransactionOptions): Opening<Tx>;
  /** A connection of its own: a full or hung pool must not keep us from finding out or ending anything. */
  readonly rescue: Query;
  /** The SQLSTATE that a rejection carries, if it carries one. */
  sqlState(error: unknown): string | undefined;
  /** The DETAIL that Postgres gave with it. */
  sqlDetail(error: unknown): string | undefined;
  /** Whether it says that no row matched. */
  isNoMatch(error: unknown): boolean;
  /** Whether it says that the connection was closed, on a server that may well be there. */
  isDisconnect(error: unknown): boolean;
}
