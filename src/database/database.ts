import type { Reply } from '../base/reply.js';

export type Row = Readonly<Record<string, unknown>>;

/** Runs one statement with bound values. */
export type Query = (text: string, values: readonly unknown[]) => Promise<readonly Row[]>;

/** A statement with values that are bound as text. */
export interface Statement {
  readonly text: string;
  readonly values: readonly (string | null)[];
  /** The name that it may be prepared under: of this text, and of no other. */
  readonly name?: string;
}

/** The columns of a row, in the server's text form. */
export type TextRow = readonly (string | null)[];

/** What the server answers to a statement. */
export interface StatementResult {
  readonly rows: readonly TextRow[];
  readonly tag: string;
}

/** How a transaction begins: BEGIN, and the statements that go out with it. */
export interface Beginning {
  readonly isolationLevel: string | undefined;
  /** The last one is the admission. */
  readonly statements: readonly Statement[];
}

/** Decides on what the database client sends over a connection once the work has begun. */
export interface Conductor {
  /** A statement of the work is about to be sent: `left` or `failed` follows. Throws what refuses it. */
  enter(text: string): void;
  left(): void;
  /** Returns the error that the work gets. */
  failed(error: unknown): unknown;
  /** The work is over and the database client asks for COMMIT. Resolves when it is done, rejects if it is not. */
  commit<T>(done: T): Promise<T>;
  /** A statement of the work has ended the transaction: `COMMIT` or `ROLLBACK`, as far as the server told. */
  ended(tag: string): void;
}

/** COMMIT that has been sent. */
export interface Committing {
  /** Its tag is `COMMIT`, or `ROLLBACK` where a failed statement had aborted the transaction; rejects without an answer. */
  readonly answer: Reply<StatementResult>;
  /** The transaction that was begun in the same flight. */
  readonly next: Connection | undefined;
}

/**
 * One transaction on one connection, in three stages: opening (the admission is on its way, the database client thinks
 * that it has begun), working (its statements pass the conductor), ending (it may send COMMIT or ROLLBACK).
 */
export interface Connection {
  stage: 'opening' | 'working' | 'ending';
  conductor: Conductor | undefined;
  /** Whether its beginning went out with the COMMIT of another transaction. */
  readonly isBehind: boolean;
  /** Whether the server says that there is no transaction on it any more; `false` where it does not tell. */
  readonly isOver: boolean;
  /** Whether COMMIT may take the next transaction along. */
  readonly canChain: boolean;
  /** An answer for each statement. Behind one that failed the others reject with `NotRun`. */
  begin(beginning: Beginning): readonly Reply<StatementResult>[];
  /** The answers of the beginning that was sent, by this connection or by the one before it. */
  readonly answers: readonly Reply<StatementResult>[];
  /** One statement of ours, behind what is in flight. */
  readonly query: Query;
  commit(next: Beginning | undefined): Committing;
  rollback(): Promise<void>;
  /** Where the database client never asked for it: rolls back, and gives it back. */
  abandon(): void;
  /** Closes it without waiting for an answer. Idempotent. */
  destroy(): void;
}

/** A statement that the server has skipped, because one before it failed (the cause), or that was never sent. */
export class NotRun extends Error {}

/** One operation of the database client, on its way to the database. */
export interface Operation {
  readonly model: string;
  readonly name: string;
  readonly args: unknown;
  /** Sends it, with these arguments instead. */
  send(args: unknown): Promise<unknown>;
  /** Sends another operation, of this or another model, in the same transaction, past the hook. */
  run(model: string, name: string, args: unknown): Promise<unknown>;
}

/** Sees the writes of a transaction that can reach fenced models, just before they are sent; answers in their place. */
export type Hook = (operation: Operation) => Promise<unknown>;

export interface BeginOptions {
  /** How long to wait for a connection of the pool; milliseconds. */
  readonly maxWait: number | undefined;
  readonly isolationLevel: string | undefined;
}

/** A model: its table and what its rows lead to. */
export interface Model {
  /** The schema of its table, where the model names one. */
  readonly schema: string | undefined;
  readonly table: string;
  /** The column of each scalar field. */
  readonly columns: ReadonlyMap<string, string>;
  /** The model at the other end of each relation field. */
  readonly relations: ReadonlyMap<string, string>;
}

/** A transaction of the database client that is about to begin. Exactly one of its verbs has to follow. */
export interface Opening<Tx> {
  /**
   * COMMIT if `body` resolves, ROLLBACK if it rejects. `hook` sees the writes, where it was opened as hooked. `close`: from
   * then on nothing begins on `tx`.
   */
  run(hook: Hook, body: (tx: Tx, close: () => void) => Promise<void>): Promise<void>;
  /** Rolls back, and gives the connection back. */
  discard(): void;
}

export interface OpeningOptions extends BeginOptions {
  /** What errors name. */
  readonly key: string;
  /** Whether some writes need a condition of ours. */
  readonly hooked: boolean;
  /** Whether it begins at all where others wait for a connection of the pool. */
  readonly evenIfWanted: boolean;
  /** The connection to begin on; without, one of the pool. */
  readonly over: Connection | undefined;
  /** Called at once with the connection when it is had. */
  readonly connected: (connection: Connection) => void;
}

/** What the fence needs of a database client, whose transactions it passes through as `Tx`. */
export interface Database<Tx> {
  /** Begins a transaction of the database client, on a connection that is the fence's. */
  open(options: OpeningOptions): Opening<Tx>;
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
  /** Whether it says that no connection was had, because the server is not there, or is starting or stopping. */
  isUnavailable(error: unknown): boolean;
  /** An operation that was called on `tx` and never sent, where the client sends none before it is awaited. */
  unsent?(tx: Tx): string | undefined;
}
