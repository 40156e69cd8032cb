/** The internals of a Prisma 7 client that are used. */
export interface PrismaInternals {
  readonly _activeProvider: string;
  readonly _engineConfig: {
    readonly adapter?: AdapterFactory;
    /** The schema of Prisma: its models and its datasource. */
    readonly inlineSchema?: string;
    /** Those that were given to `new PrismaClient`. */
    readonly transactionOptions?: {
      readonly isolationLevel?: 'ReadUncommitted' | 'ReadCommitted' | 'RepeatableRead' | 'Serializable';
    };
  };
  readonly _engine?: Engine;
  readonly _runtimeDataModel: { readonly models: Readonly<Record<string, DataModel>> };
  /** The extensions that were applied to it. */
  readonly _extensions?: { isEmpty(): boolean };
  $extends(extension: unknown): PrismaInternals;
  $disconnect(): Promise<void>;
  $transaction<R>(body: (tx: TransactionClient) => Promise<R>, options: Record<string, unknown>): Promise<R>;
}

/** A field of the run-time data model. */
interface ModelField {
  readonly name: string;
  readonly kind: string;
  readonly type: string;
  readonly dbName?: string | null;
}

interface DataModel {
  readonly fields: readonly ModelField[];
  readonly dbName: string | null;
  readonly schema?: string | null;
}

/** What executes the operations. It answers a batch in the order of the batch, an error as a value, and may answer less. */
export interface Engine {
  requestBatch?(queries: readonly EngineQuery[], options?: EngineOptions): Promise<readonly unknown[]>;
}

export interface EngineQuery {
  /** `undefined` for raw SQL. */
  readonly modelName?: string;
  readonly action: string;
}

interface EngineOptions {
  readonly transaction?: { readonly kind?: string; readonly options?: { readonly id?: unknown } };
}

/** The factory of a driver adapter, such as `new PrismaPg({ connectionString })`. */
export interface AdapterFactory {
  readonly provider: string;
  readonly adapterName: string;
  connect(): Promise<unknown>;
}

/** The client of an interactive transaction. */
export type TransactionClient = Record<string, Record<string, (args: unknown) => Promise<unknown>>>;

/** The parameters of a query hook. */
export interface HookParams {
  readonly model?: string;
  readonly operation: string;
  readonly args: unknown;
  readonly query: (args: unknown, params?: OperationParams) => Promise<unknown>;
  /** Not documented, but Prisma's own extension for read replicas relies on it. */
  readonly __internalParams?: OperationParams;
}

/** What Prisma executes. The second parameter of `query` replaces it, behind the extensions that have seen it already. */
interface OperationParams {
  readonly args?: unknown;
  /**
   * `itx` of `$transaction(async …)`, with its id; `batch` of `$transaction([…])`; `undefined` for an operation by itself.
   */
  readonly transaction?: { readonly kind?: string; readonly id?: unknown };
  readonly action?: string;
  /** `stock.update`, as Prisma's messages name it. */
  readonly clientMethod?: string;
  /** Which part of the result the caller gets: not empty for `tx.stock.update(…).orders()`. */
  readonly dataPath?: readonly string[];
  readonly unpacker?: unknown;
}
