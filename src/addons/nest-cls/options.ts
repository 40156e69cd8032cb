import { InvalidOptionError } from '../../base/errors.js';

/** A Prisma client that is extended by fencedLock, as far as the adapter uses it. */
export interface LockingClient {
  $withLock(key: never, fn: never, options?: never): Promise<unknown>;
  $transaction(fn: never, options?: never): Promise<unknown>;
}

export interface TransactionalAdapterOptions {
  /** What the client is injected by: your PrismaService, or `getLockClientToken()`. */
  readonly clientToken: unknown;
  /** Options of every transaction that stands in no lock. */
  readonly defaultTxOptions?: FencedLockTransactionOptions | undefined;
}

/** Of a transaction that stands in no lock, as Prisma has them. One that joins a lock has those of the lock. */
export interface FencedLockTransactionOptions {
  /** How long to wait for a connection of the pool; ms. Default: that of `transactionOptions` of the client, or Prisma's (2 000). */
  readonly maxWait?: number | undefined;
  /** How long the work may take; ms. In a lock: how long this part of its work may; refused in a
   * transaction of a handle. Default: that of `transactionOptions`, or Prisma's (5 000). */
  readonly timeout?: number | undefined;
  /** In a lock it must be that of the lock. Default: that of `transactionOptions`, or the database's. */
  readonly isolationLevel?: 'ReadUncommitted' | 'ReadCommitted' | 'RepeatableRead' | 'Serializable' | undefined;
}

/** @throws InvalidOptionError */
export function checkClient(client: unknown): LockingClient {
  const { $withLock, $transaction } = (client ?? {}) as Partial<LockingClient>;
  if (typeof $withLock === 'function' && typeof $transaction === 'function') return client as LockingClient;
  throw new InvalidOptionError(
    'clientToken',
    'must be the token of a Prisma client that is extended by fencedLock, and another one was injected.',
  );
}
