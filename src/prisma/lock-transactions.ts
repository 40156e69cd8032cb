import { processWide } from '../base/process-wide.js';
import type { Hook, SkippedOperation } from '../database/database.js';

/** The transaction of a lock, while its function runs. */
interface LockTransaction {
  /** Where its writes are sent, if they need a condition on the fence. */
  readonly hook: Hook | undefined;
  /** Notes an operation that Prisma does not send, and makes its error. */
  skip(skipped: SkippedOperation): Error;
}

/** By their ids. Another copy of this package may have hooked the client. */
const open = processWide('transactions', () => new Map<unknown, LockTransaction | undefined>());

/**
 * Remembers the transaction of a lock until the returned function is called. `id`: `undefined` if Prisma does not tell it; then
 * any interactive transaction counts as one of a lock, so that no healthy write is refused.
 */
export function rememberTransaction(id: unknown, transaction: LockTransaction): () => void {
  open.set(id, id === undefined ? undefined : transaction);
  return () => {
    if (id !== undefined) open.delete(id);
  };
}

export function lockTransaction(id: unknown): LockTransaction | undefined {
  return open.get(id);
}

/** Whether an operation belongs to the transaction of a lock, by what Prisma tells of its transaction. */
export function isOfLock(kind: string | undefined, id: unknown): boolean {
  return kind === 'itx' && (open.has(id) || open.has(undefined));
}
