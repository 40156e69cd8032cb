import type { DataModel } from './schema.js';

/** What is used of a Prisma 7 client's inside. Nothing else of it is touched anywhere. */
export interface PrismaInternals {
  readonly _activeProvider: string;
  readonly _engineConfig: { readonly adapter?: AdapterFactory; readonly inlineSchema?: unknown };
  /** Runs what a client sends, past all extensions. Prisma's own note says not to rename or remove it. */
  readonly _engine: {
    request(query: unknown, options: { interactiveTransaction: TransactionInfo }): Promise<{ data: RawAnswer }>;
  };
  readonly _runtimeDataModel: DataModel;
  $extends(extension: unknown): PrismaInternals;
  $disconnect(): Promise<void>;
  $transaction(body: (tx: TransactionClient) => Promise<unknown>, options: Record<string, unknown>): Promise<unknown>;
}

/** A driver adapter, such as `new PrismaPg({ connectionString })`. */
export interface AdapterFactory {
  readonly provider: string;
  readonly adapterName: string;
  connect(): Promise<unknown>;
}

/** Where Prisma 7 keeps the id of a transaction on its client. */
export const TRANSACTION = Symbol.for('prisma.client.transaction.scope_context');

/** The client of a transaction. */
export type TransactionClient = Record<string, Record<string, (args: unknown) => Promise<unknown>>> & {
  readonly [TRANSACTION]: { readonly txId: string };
};

export interface TransactionInfo {
  readonly kind: 'itx';
  readonly id: string;
}

interface RawAnswer {
  readonly queryRaw: { readonly columns: readonly string[]; readonly rows: readonly unknown[][] };
}

/** What Prisma gives a query hook. */
export interface HookParams {
  readonly model?: string;
  readonly operation: string;
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
  readonly __internalParams: { readonly transaction?: { readonly kind: string; readonly id: string } };
}
