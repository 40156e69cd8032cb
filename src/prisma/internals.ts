import type { DataModel } from './schema.js';

/** The internals of a Prisma 7 client that are used. Nothing else of the client's inside is used anywhere. */
export interface PrismaInternals {
  readonly _activeProvider: string;
  readonly _engineConfig: { readonly adapter?: AdapterFactory };
  readonly _runtimeDataModel: DataModel;
  $extends(extension: unknown): PrismaInternals;
  $disconnect(): Promise<void>;
  $transaction<R>(body: (tx: TransactionClient) => Promise<R>, options: Record<string, unknown>): Promise<R>;
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
  readonly query: (args: unknown) => Promise<unknown>;
}
