import { Deadline, sleep, within } from '../base/clock.js';
import { LockLostError, TransactionAbortedError } from '../base/errors.js';
import type { Call } from './call.js';

/**
 * How long to look. forceRelease() ends the transaction first, then commits a new token, and only then takes the lease;
 * milliseconds.
 */
const LOOK_TIME = 1_000;
const FIRST_PAUSE = 25;

/**
 * Explains why Postgres closed a transaction's connection. The error is the same for a restart and for a holder whose
 * key was taken, but only the latter has lost its lease. Any other error is returned unchanged.
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
