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
  off?(event: 'error', listener: (error: Error) => void): unknown;
  release(error?: Error | boolean): void;
  /** Of the backend: database clients cancel a statement by it. */
  readonly processID?: number | null | undefined;
  /** `I`: outside a transaction, `T`: inside one, `E`: inside a failed one. pg 8.22 and later. */
  getTransactionStatus?(): string | null;
  readonly connection?: {
    prependListener(event: 'readyForQuery', listener: (message: ReadyForQuery) => void): unknown;
  };
}

/** A query object that sends itself, such as a cursor. */
export interface Submittable {
  readonly text?: string;
  /** Of a stream. */
  readonly cursor?: { readonly text?: string };
  /** Of a `Query`. */
  queryMode?: string;
  submit(connection: unknown): unknown;
  handleReadyForQuery(...given: unknown[]): void;
  handleError(error: unknown, ...given: unknown[]): void;
  /** Of a cursor. */
  close?(): unknown;
  /** Of a stream. */
  destroy?(): unknown;
}

export function isSubmittable(query: unknown): query is Submittable {
  return typeof (query as Partial<Submittable> | null)?.submit === 'function';
}

/** The result of a query of pg. */
export interface PgResult {
  readonly command: string | null;
  readonly oid?: number | null;
  readonly rowCount?: number | null;
  readonly fields?: readonly PgField[];
  /** Arrays, if the query asked for them. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

export interface PgField {
  readonly name: string;
  readonly dataTypeID: number;
}

/** The part of pg's connection that a query object sends by. */
export interface Wire {
  readonly stream: { readonly writable: boolean; write(bytes: Uint8Array): unknown };
  /** The texts of the prepared statements, by their names. */
  readonly parsedStatements: Record<string, string>;
  parse(statement: { readonly text: string; readonly name: string }): void;
  bind(config: { readonly statement: string; readonly values: readonly (string | null)[] }): void;
  describe(of: { readonly type: 'P'; readonly name: string }): void;
  execute(config: object): void;
  close(of: { readonly type: 'S'; readonly name: string }): void;
  flush(): void;
  sync(): void;
}

/** pg's `Query` class. With `pipeline`, pg accepts only instances of it. */
export type QueryClass = new (
  text: string,
) => {
  readonly text: string;
  /** pg sets it to the second argument of `client.query`. */
  callback?: ((error?: unknown, result?: unknown) => void) | undefined;
};

/**
 * Sends all messages of `write` in one write: a write of many parts costs Node as much as some of the statements. Nothing
 * is sent if it throws, or on a closed stream, which pg reports by its error event.
 */
export function inOneWrite(wire: Wire, write: (once: Wire) => void): void {
  const parts: Uint8Array[] = [];
  const stream = { writable: true, write: (bytes: Uint8Array) => parts.push(bytes) };
  write(Object.create(wire, { stream: { value: stream } }));
  if (wire.stream.writable) wire.stream.write(Buffer.concat(parts));
}
