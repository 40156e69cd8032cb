import { inFlightAtReturn, TransactionAbortedError } from '../base/errors.js';
import type { Database } from '../database/database.js';

/**
 * Called when the function has returned. An operation that was not sent by then is never sent. One that is in flight was
 * not awaited, nor is what its caller sends next: a commit would keep a part of that work. @throws
 * TransactionAbortedError
 */
export function refuseUnawaited<Tx>(database: Database<Tx>, tx: Tx, key: string): void {
  const unsent = database.unsent?.(tx);
  if (unsent !== undefined) {
    throw new TransactionAbortedError(
      key,
      `\`${unsent}\` was called in its function and never awaited, so it was not sent. Await every operation, and remove ` +
        'those that are not needed.',
    );
  }
  const inFlight = database.inFlight?.(tx);
  if (inFlight !== undefined) throw inFlightAtReturn(key, `\`${inFlight}\``);
}
