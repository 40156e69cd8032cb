import type { Redis } from 'ioredis';
import type { PrismaClient } from '../../test/generated/prisma/client.js';

/** How long every contestant may wait for its turn; ms. The default of `$withLock`. */
export const WAIT_TIME = 10_000;
/** How long every contestant's lease stands, unless its process says otherwise; ms. The default of `$withLock`. */
export const LEASE_TIME = 5_000;

/** One operation: lowers the quantity of the row `id` by one, under `key`. */
export interface Sale {
  readonly key: string;
  readonly id: number;
  /** Whose order the same transaction inserts. Without a buyer it inserts none. */
  readonly buyer?: string;
  /** The turn is had; the work waits for what this returns. */
  began?(): Promise<void> | void;
  /** The row is read and not yet written; the write waits for what this returns. */
  hasRead?(): Promise<void> | void;
  /** The work is done; COMMIT comes next. */
  ended?(): void;
  /** The transaction has ended; the lock is given back next. */
  releases?(): void;
}

/** What a contestant finds in its process. */
export interface Surroundings {
  readonly prisma: PrismaClient;
  readonly redis: Redis;
  readonly site: { readonly plain: string; readonly redis: string };
  /** How long each lease stands; ms. */
  readonly leaseTime: number;
  shop(name: Contestant['shop']): PrismaClient;
}

/** A way to do it. Opened once in each process. */
export interface Contestant {
  readonly name: string;
  /** Where its callers wait for each other; `nowhere`: they meet at the row, or do not see each other. */
  readonly waits: 'redis' | 'process' | 'postgres' | 'nowhere';
  /** In `guarded` the table has the guard. */
  readonly shop: 'plain' | 'guarded';
  /** The client that it works through, where that is not its shop's. */
  prisma?(house: Surroundings): PrismaClient;
  open(house: Surroundings): Promise<Seller> | Seller;
}

export interface Seller {
  /** Rejects if the sale was not made. */
  sell(sale: Sale): Promise<void>;
  /** Whether this error of `sell` leaves open if the sale was made. */
  isUnknown?(error: unknown): boolean;
  close(): Promise<void> | void;
}

/** What the work asks of a transaction: clients with and without an extension have different types. */
interface Tx {
  readonly stock: {
    findUniqueOrThrow(args: { where: { id: number } }): Promise<{ quantity: number }>;
    update(args: { where: { id: number }; data: { quantity: number } }): Promise<unknown>;
  };
  readonly order: {
    create(args: { data: { stockId: number; buyer: string; quantity: number } }): Promise<unknown>;
  };
}

/** The order of a sale that has a buyer. */
export async function placeOrder(tx: Pick<Tx, 'order'>, stockId: number, buyer: string): Promise<void> {
  await tx.order.create({ data: { stockId, buyer, quantity: 1 } });
}

/**
 * The work of all of them: read the row, and write what follows from what was read. After a pause `check` throws if
 * the contestant has heard meanwhile that its lock is lost.
 */
export async function work(tx: Tx, sale: Sale, check?: () => void): Promise<void> {
  const { id, buyer, began, hasRead, ended } = sale;
  await began?.();
  const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
  if (hasRead !== undefined) {
    await hasRead();
    check?.();
  }
  await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
  if (buyer !== undefined) await placeOrder(tx, id, buyer);
  ended?.();
}

export const nothing = (): void => {};
