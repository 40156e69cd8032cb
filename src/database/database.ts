import type { Reply } from '../base/reply.js';

export type Row = Readonly<Record<string, unknown>>;

/** Sends one statement with bound values. */
export type Query = (text: string, values: readonly unknown[]) => Promise<readonly Row[]>;

/** A statement whose values are bound as text. */
export interface Statement {
  readonly text: string;
  readonly values: readonly (string | null)[];
  /** The name for a prepared statement. It must belong to this text only. */
  readonly name?: string;
}

/** The columns of a row, in the server's text format. */
export type TextRow = readonly (string | null)[];

/** The server's answer to a statement. */
export interface StatementResult {
  readonly rows: readonly TextRow[];
  readonly tag: string;
}

/** How a transaction begins: BEGIN, and the statements that are sent with it. */
export interface Beginning {
  readonly isolationLevel: string | undefined;
  /** The last statement is the admission. */
  readonly statements: readonly Statement[];
}

/** Every statement of the work enters before it is sent, and leaves when it is answered. */
export interface Passage {
  /** Throws to refuse it. */
  enter(text: string): void;
  leave(): void;
  /** Called instead of `leave` for a failed statement. Returns the error that the work gets. */
  failed(error: unknown): unknown;
  /**
   * Called when a statement of the work has ended the transaction. `tag` is `COMMIT` or `ROLLBACK`, as far as the
   * server told.
   */
  ended(tag: string): void;
}

/** Decides about what the database client sends on a connection once the work has begun. */
export interface Conductor {
  /** The key of the lock, for errors. */
  readonly key: string;
  readonly gate: Passage;
  /** Called when the work is over and the database client sends COMMIT. Resolves if the transaction has committed. */
  commit<T>(done: T): Promise<T>;
  /** Called when the connection has ended, whether or not a statement was in flight. */
  closed(error: unknown): void;
}

/** A COMMIT that has been sent. */
export interface Committing {
  /**
   * Resolves with the tag `COMMIT`, or `ROLLBACK` if a failed statement had aborted the transaction. Rejects without an
   * answer.
   */
  readonly answer: Reply<StatementResult>;
  /** The transaction that was begun in the same flight. */
  readonly next: Connection | undefined;
}

/**
 * One transaction on one connection. Its stages: `opening` (the admission is in flight; the database client believes
 * that its BEGIN was sent), `working` (statements pass the conductor), `ending` (the database client may send COMMIT or
 * ROLLBACK).
 */
export interface Connection {
  stage: 'opening' | 'working' | 'ending';
  conductor: Conductor | undefined;
  /** Whether BEGIN was sent with the COMMIT of another transaction, and that COMMIT has no answer yet. */
  readonly isBehindCommit: boolean;
  /** Whether the server says that there is no transaction any more; `false` if the driver does not tell. */
  readonly isOver: boolean;
  /** Whether the next transaction may begin in one flight with this COMMIT. */
  readonly canChain: boolean;
  /** Whether somebody waits for a connection of its pool, as far as that is known. */
  readonly isPoolWaitedFor: boolean;
  /** The error with which the server closed the connection while nothing was in flight; `undefined` if it told none. */
  readonly closedBy: unknown;
  /** One reply for each statement. After a failed statement, the others reject with `NotRun`. */
  begin(beginning: Beginning): readonly Reply<StatementResult>[];
  /** The replies to the statements of `begin`, sent by this connection or with the COMMIT of the previous one. */
  readonly answers: readonly Reply<StatementResult>[];
  /** Sends a statement of this package, after everything in flight. */
  readonly query: Query;
  commit(next: Beginning | undefined): Committing;
  rollback(): Promise<void>;
  /** Called if the database client will never end the transaction: rolls back and returns the connection. */
  abandon(): void;
  /**
   * Called when the transaction is given up: closes the connection if the server stays silent, because its pool would
   * miss it for good.
   */
  closeIfSilent(): void;
  /** Closes the connection without waiting for an answer. Idempotent. */
  destroy(): void;
}

/**
 * The error of a statement that was never sent, or that the server skipped because an earlier one failed (see the
 * cause).
 */
export class NotRun extends Error {}

/** One operation of the database client, before it is sent. */
export interface Operation {
  readonly model: string;
  readonly name: string;
  readonly args: unknown;
  /** Sends the operation with these arguments, under its own name or another one; its caller gets the result. */
  send(args: unknown, name?: string): Promise<unknown>;
  /**
   * Runs another operation of the model, in the same transaction. Only this package gets the result: neither the hook nor
   * the extensions of the client see the operation.
   */
  run(name: string, args: unknown): Promise<unknown>;
}

/** Every write that can reach fenced models goes through it, if the transaction was opened as `hooked`. */
export interface Hook {
  /** Sends a write, and returns its result. */
  send(operation: Operation): Promise<unknown>;
}

/** A model: its table, and the models that its rows lead to. */
export interface Model {
  /** The schema of the table; `undefined` while it is not known. */
  readonly schema: string | undefined;
  readonly table: string;
  /** The column of each scalar field. */
  readonly columns: ReadonlyMap<string, string>;
  /** The model at the other end of each relation field. */
  readonly relations: ReadonlyMap<string, string>;
  /** Whether the database client emulates the foreign keys of these relations: it looks rows up, and then writes them by id. */
  readonly emulatesKeys: boolean;
  /** The database client's value of a scalar field, from the JSON that Postgres makes of it. */
  valueOf(field: string, json: unknown): unknown;
}

/** A transaction that the database client is opening. Call exactly one of its methods. */
export interface ClientTransaction<Tx> {
  /** Commits if `body` resolves, rolls back if it rejects. `close` ends `tx`: no operation begins on it after that. */
  run(hook: Hook, body: (tx: Tx, close: () => void) => Promise<void>): Promise<void>;
  /** Rolls back and returns the connection. Settles when the database client has ended its transaction. */
  discard(): Promise<unknown>;
}

export interface ClientTransactionOptions {
  /** How long to wait for a connection of the pool; milliseconds. */
  readonly maxWait: number | undefined;
  readonly isolationLevel: string | undefined;
  /** The key that errors name. */
  readonly key: string;
  /** Whether writes of some models need a condition on the fence. */
  readonly hooked: boolean;
  /** Whether to open it even if other callers wait for a connection of the pool. */
  readonly evenIfWanted: boolean;
}

/** Where a transaction gets its connection. */
export interface Place {
  /** The connection to begin on; `undefined` for one of the pool. */
  readonly over: Connection | undefined;
  /** Called synchronously when there is a connection. */
  readonly connected: (connection: Connection) => void;
}

/**
 * Operations of a transaction that are not done, at the time a property is read; `undefined` if there is no such operation.
 */
export interface Unfinished {
  /** The name of an operation that was called and never sent, of a client that sends operations when they are awaited. */
  readonly unsent: string | undefined;
  /** The name of an operation that was sent and has not settled. */
  readonly inFlight: string | undefined;
  /** The error of an operation that was awaited, and was not sent. The transaction must not commit without it. */
  readonly refused: Error | undefined;
}

/** An operation that was not sent because `failed`, which the client had put into the same batch, came first. */
export interface SkippedOperation {
  readonly name: string;
  readonly failed: { readonly name: string; readonly error: unknown };
}

/** The port to a database client. `Tx` is its transaction client. */
export interface Database<Tx> {
  /**
   * Whether the caller may be inside a transaction of the client that is not of a lock. Only `false` is certain. Absent for a
   * client whose transactions are not counted.
   */
  mayBeInsideTransaction?(): boolean;
  /** Opens a transaction of the database client on a fenced connection. */
  open(options: ClientTransactionOptions, place: Place): ClientTransaction<Tx>;
  /**
   * Sends a statement over the rescue connection, a separate one: a full or hung pool must not prevent finding out an
   * outcome or ending a backend.
   */
  readonly rescue: Query;
  /** The SQLSTATE of an error, if it has one. */
  sqlState(error: unknown): string | undefined;
  /** The DETAIL of a Postgres error, if it has one. */
  sqlDetail(error: unknown): string | undefined;
  /** Whether the server answered a statement with this error, and goes on serving the connection. */
  isStatementError(error: unknown): boolean;
  /** Whether the error says that no row matched. */
  isNoMatch(error: unknown): boolean;
  /** Whether the error says that the connection was closed. The server may be up. */
  isDisconnect(error: unknown): boolean;
  /** Whether the error says that no connection could be made: the server is down, starting or stopping. */
  isUnavailable(error: unknown): boolean;
  /** Whether the error says that the pool of this client was ended: it gives no connection any more. */
  isEnded?(error: unknown): boolean;
  /** What was called on `tx` and is not done, for a client that tells. */
  unfinished?(tx: Tx): Unfinished | undefined;
}
