import { Deadline, sleep, within } from '../base/clock.js';
import { LockLostError, TransactionAbortedError } from '../base/errors.js';
import type { Call } from './call.js';

/** How long to look: an operator ends the transaction first, commits a token, and takes the lease only then; ms. */
const LOOK_TIME = 1_000;
const FIRST_PAUSE = 25;

/**
 * What has ended a transaction, where its connection was closed underneath. Postgres says the same of a restart and of
 * a holder that is overtaken, but only that one has lost its lease. Any other error as it is.
 */
export async function fromOvertaking(
  error: unknown,
  { database, leases }: Pick<Call<unknown, unknown>, 'database' | 'leases'>,
): Promise<unknown> {
  if (!database.isDisconnect(error instanceof TransactionAbortedError ? error.cause : error)) return error;
  const deadline = new Deadline(LOOK_TIME);
  for (let pause = FIRST_PAUSE; !deadline.passed; pause *= 2) {
    await within(leases.look(), deadline.remaining);
    const { loss } = leases;
    if (loss) return loss.reason === 'gone' ? new LockLostError(loss.key ?? leases.key, 'overtaken', error) : loss;
    await sleep(Math.min(pause, deadline.remaining));
  }
  return error;
}
