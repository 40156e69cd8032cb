import type { Redis } from 'ioredis';
import type { PrismaClient } from '../../test/generated/prisma/client.js';

/** How long every contestant may wait for its turn; ms. The default of `$withLock`. */
export const WAIT_TIME = 10_000;
/** How long every contestant's lease stands; ms. The default of `$withLock`. */
export const LEASE_TIME = 5_000;

/** One operation: lowers the quantity of the row `id` by one, under `key`. */
export interface Sale {
  readonly key: string;
  readonly id: number;
  /** The turn is had; the work waits for what this returns. */
  began?(): Promise<void> | void;
  /** The work is done; COMMIT comes next. */
  ended?(): void;
  /** The transaction has ended; the lock is given back next. */
  releases?(): void;
}

/** What a contestant finds in its process. */
export interface Surroundings {
  readonly prisma: PrismaClient;
  readonly redis: Redis;
  readonly site: { readonly redis: string };
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
  close(): Promise<void> | void;
}

/** What the work asks of a transaction: clients with and without an extension have different types. */
interface Tx {
  readonly stock: {
    findUniqueOrThrow(args: { where: { id: number } }): Promise<{ quantity: number }>;
    update(args: { where: { id: number }; data: { quantity: number } }): Promise<unknown>;
  };
}

/** The work of all of them: read the row, and write what follows from what was read. */
export async function work(tx: Tx, { id, began, ended }: Sale): Promise<void> {
  await began?.();
  const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
  await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } });
  ended?.();
}

export const nothing = (): void => {};
