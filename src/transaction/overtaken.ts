import { Backoff } from '../base/backoff.js';
import { Deadline, sleep, within } from '../base/clock.js';
import { LockLostError, TransactionAbortedError } from '../base/errors.js';
import { IDLE_IN_TRANSACTION_TIMEOUT, TRANSACTION_TIMEOUT } from '../database/sql-states.js';
import type { CallContext } from './call.js';

/**
 * How long to look. forceRelease() ends the transaction first, then commits a new token, and only then takes the lease;
 * milliseconds.
 */
const LOOK_TIME = 1_000;
/**
 * The same where it is unlikely, because the key is kept from others while this looks; milliseconds. A connection that was
 * reset: a backend that is ended says so before it closes the connection, so this is mostly a failure of the network. And one
 * that a time limit of Postgres has ended.
 */
const SHORT_LOOK_TIME = 100;
/** SQLSTATEs of the time limits that end a session inside its transaction. */
const TIME_LIMITS: ReadonlySet<string | undefined> = new Set([IDLE_IN_TRANSACTION_TIMEOUT, TRANSACTION_TIMEOUT]);
/** First pause between two looks; milliseconds. */
const FIRST_PAUSE = 25;

/**
 * Explains why Postgres closed a transaction's connection. The error is the same for a restart and for a holder whose
 * key was taken, but only the latter has lost its lease. Any other error is returned unchanged.
 *
 * @param closedBy the error with which the connection was closed, if it is known.
 */
export async function fromOvertaking(
  error: unknown,
  { database, leases }: CallContext,
  closedBy?: unknown,
): Promise<unknown> {
  const failure = error instanceof TransactionAbortedError ? error.cause : error;
  if (!database.isDisconnect(failure)) return error;
  const isUnlikely = isReset(failure) || [failure, closedBy].some((each) => TIME_LIMITS.has(database.sqlState(each)));
  const deadline = new Deadline(isUnlikely ? SHORT_LOOK_TIME : LOOK_TIME);
  const backoff = new Backoff(FIRST_PAUSE, LOOK_TIME);
  while (!deadline.passed) {
    await within(leases.look(), deadline.remaining);
    const { loss } = leases;
    if (loss) return loss.reason === 'gone' ? new LockLostError(loss.key ?? leases.key, 'overtaken', error) : loss;
    await sleep(Math.min(backoff.next(), deadline.remaining));
  }
  return error;
}

function isReset(failure: unknown): boolean {
  const { code } = failure as { readonly code?: unknown };
  return code === 'ECONNRESET' || code === 'EPIPE';
}
