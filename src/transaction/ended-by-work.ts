import { Deadline } from '../base/clock.js';
import { InsideTransactionError, TransactionAbortedError } from '../base/errors.js';
import type { Database } from '../database/database.js';
import type { Admission } from './admission.js';
import { OUTCOME_TIME, resolveOutcome } from './lost-commit.js';

/** The command tag of the statement of the work that ended its transaction, where the server did not tell it. */
export async function tagOfEnd({ rescue }: Pick<Database<unknown>, 'rescue'>, admission: Admission): Promise<string> {
  const outcome = await resolveOutcome(rescue, admission, new Deadline(OUTCOME_TIME));
  return outcome === 'aborted' ? 'ROLLBACK' : 'COMMIT';
}

/**
 * The error for a transaction that a statement of the work has ended. `failure`: the first failed statement, if there is
 * one.
 */
export function endedByWork(
  tag: string | undefined,
  key: string,
  failure: unknown,
  cause?: unknown,
): InsideTransactionError | TransactionAbortedError {
  if (tag === 'ROLLBACK') {
    return new TransactionAbortedError(key, 'ended', 'it had been ended before its function returned.', failure);
  }
  return new InsideTransactionError(
    'The transaction of the lock was ended inside its function, by a COMMIT that is not its own: what was written until ' +
      'then is committed, and nothing was sent after it. Return from the function to commit, or throw to roll back.',
    { key, cause: cause instanceof InsideTransactionError ? undefined : cause },
  );
}
