import { TransactionAbortedError } from '../base/errors.js';
import type { Database } from '../database/database.js';

/**
 * Called when the function has returned: an operation that was not sent by then is never sent. @throws
 * TransactionAbortedError
 */
export function refuseUnsent<Tx>(database: Database<Tx>, tx: Tx, key: string): void {
  const unsent = database.unsent?.(tx);
  if (unsent === undefined) return;
  throw new TransactionAbortedError(
    key,
    `\`${unsent}\` was called in its function and never awaited, so it was not sent. Await every operation, and remove ` +
      'those that are not needed.',
  );
}
