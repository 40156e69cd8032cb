// The part of pg that is used. The package does not depend on pg: the pool comes from the driver adapter.

export interface PgPool {
  connect(): Promise<PgClient>;
  on(event: 'connect', listener: (client: PgClient) => void): unknown;
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
  readonly ending: boolean;
  readonly Client: { readonly Query: QueryClass };
}

/** What the server says when it is ready for the next statement: the transaction status, too. */
export interface ReadyForQuery {
  readonly status?: string;
}

/** A client of pg that was taken from its pool. */
export interface PgClient {
  query(query: unknown, callback?: (error?: unknown) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  release(error?: Error | boolean): void;
  /** The backend's process id, as the server told it at the start of the session. Behind a pooler it means nothing. */
  readonly processID?: number | null;
  /** Whether results are requested in binary format. */
  readonly binary?: boolean;
  /** `I`: outside a transaction, `T`: inside one, `E`: inside a failed one. pg 8.22 and later. */
  getTransactionStatus?(): string | null;
  readonly connection?: {
    prependListener(event: 'readyForQuery', listener: (message: ReadyForQuery) => void): unknown;
  };
}

/** The result of a query of pg. */
export interface PgResult {
  readonly command: string | null;
  /** Arrays, if the query asked for them. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** The part of pg's connection that a query object writes to. */
export interface Wire {
  readonly stream: { readonly writable: boolean; write(messages: Buffer): unknown };
}

/** pg's `Query` class. With `pipeline`, pg accepts only instances of it. */
export type QueryClass = new (
  text: string,
) => {
  readonly text: string;
  /** pg sets it to the second argument of `client.query`. */
  callback?: ((error?: unknown, result?: unknown) => void) | undefined;
};
