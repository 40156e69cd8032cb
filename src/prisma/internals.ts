import type { DataModel } from './schema.js';

/** What is used of a Prisma 7 client's inside. Nothing else of it is touched anywhere. */
export interface PrismaInternals {
  readonly _activeProvider: string;
  readonly _engineConfig: { readonly adapter?: AdapterFactory };
  readonly _runtimeDataModel: DataModel;
  $extends(extension: unknown): PrismaInternals;
  $disconnect(): Promise<void>;
  $transaction<R>(body: (tx: TransactionClient) => Promise<R>, options: Record<string, unknown>): Promise<R>;
}

/** A driver adapter, such as `new PrismaPg({ connectionString })`. */
export interface AdapterFactory {
  readonly provider: string;
  readonly adapterName: string;
  connect(): Promise<unknown>;
}

/** The client of a transaction. */
export type TransactionClient = Record<string, Record<string, (args: unknown) => Promise<unknown>>>;

/** What Prisma gives a query hook. */
export interface HookParams {
  readonly model?: string;
  readonly operation: string;
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
}
