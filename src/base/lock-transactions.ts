import { processWide } from './process-wide.js';

/** The ids of the transactions of locks. Another copy of this package may have hooked the client. */
const ids = processWide('transactions', () => new Set<unknown>());

/**
 * Remembers the transaction of a lock until the returned function is called. `id`: `undefined` if Prisma does not tell it; then
 * any interactive transaction counts as one of a lock, so that no healthy write is refused.
 */
export function rememberTransaction(id: unknown): () => void {
  ids.add(id);
  return () => {
    if (id !== undefined) ids.delete(id);
  };
}

/** Whether an operation belongs to the transaction of a lock, by what Prisma tells of its transaction. */
export function isOfLock(kind: string | undefined, id: unknown): boolean {
  return kind === 'itx' && (ids.has(id) || ids.has(undefined));
}
