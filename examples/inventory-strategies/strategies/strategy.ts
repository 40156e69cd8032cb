/** One attempt to sell one unit. */
interface Sale {
  readonly stockId: number;
  readonly buyer: string;
  /** Between the read and the write: the rules are worked out, and one process is frozen. */
  think(): Promise<void>;
}

export type SaleResult = 'sold' | 'sold out';

/** One way of selling, opened once in each process. */
export interface Strategy {
  /** Rejects only if nothing was sold. */
  sell(sale: Sale): Promise<SaleResult>;
  /** Whether `sell` was refused because somebody else had the lock meanwhile. The buyer may try again. */
  isRefusal?(error: unknown): boolean;
  close(): Promise<void>;
}

/** Where it sells. */
export interface Site {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Of every lock that has a lease; ms. */
  readonly leaseTime: number;
}

/** Long enough that nobody gives up in the crowd; ms. What is compared is locks, not how a queue overflows. */
export const PATIENCE = 60_000;

/** Where the strategies that keep the stock in Redis have it. The braces put both keys on one node of a Cluster. */
export const quantityIn = (stockId: number): string => `stock:{${stockId}}:quantity`;
export const fenceIn = (stockId: number): string => `stock:{${stockId}}:fence`;
