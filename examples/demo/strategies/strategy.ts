import type { Sale, SaleResult } from '../sale.js';

/** How a worker keeps its sales apart from those of the others. */
export interface Strategy {
  /** Rejects only if nothing was sold. */
  sell(sale: Sale): Promise<SaleResult>;
  /** Whether `sell` was refused because the lock had been lost: nothing was sold, and the buyer may try again. */
  isRefusal(error: unknown): boolean;
  close(): Promise<void>;
}

export interface Site {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Of the one product that everybody wants. */
  readonly key: string;
  readonly leaseTime: number;
  /** Of the shop, as other processes are told it. */
  readonly name: string;
}

/** Long enough that nobody gives up in the crowd. What is shown is what a lock does, not how a queue overflows. */
export const PATIENCE = 60_000;
