import { FencedLockError, TransactionAbortedError } from '../base/errors.js';
import {
  ADMIN_SHUTDOWN,
  DEADLOCK,
  IDLE_IN_TRANSACTION_TIMEOUT,
  SERIALIZATION_FAILURE,
  TRANSACTION_TIMEOUT,
} from '../database/sql-states.js';
import type { CallContext } from './call.js';

/** What Postgres said, by SQLSTATE, when it closed a connection, and our sentence for it. */
const CLOSED: ReadonlyMap<string, string> = new Map([
  [
    ADMIN_SHUTDOWN,
    'Postgres ended its connection before COMMIT took effect, because somebody asked for that (57P01: ' +
      'pg_terminate_backend, as `fenced-lock unlock` and another holder of the key use it, or a shutdown of the server).',
  ],
  [
    IDLE_IN_TRANSACTION_TIMEOUT,
    'Postgres ended its connection before COMMIT took effect, because the transaction had been idle for too long (25P03: ' +
      'idle_in_transaction_session_timeout, which is at most the lease time).',
  ],
  [
    TRANSACTION_TIMEOUT,
    'Postgres ended its connection before COMMIT took effect, because the transaction was longer than the ' +
      'transaction_timeout of the role or the database (25P04).',
  ],
]);

/**
 * Whether a statement failed because its connection did. On a connection that was there, an error such as ETIMEDOUT
 * says that, too.
 */
export function isLoss(database: CallContext['database'], error: unknown): boolean {
  return database.isDisconnect(error) || database.isUnavailable(error);
}

/** Whether Postgres said that it closes the connection. Its backend then ends by itself. */
export function isClosedByPostgres(database: CallContext['database'], error: unknown): boolean {
  return CLOSED.has(database.sqlState(error) ?? '');
}

/**
 * The error of a transaction that did not commit because its connection failed.
 *
 * @param saidBy errors of which the first that tells why Postgres has closed the connection is believed.
 */
export function connectionClosed(
  { database, leases }: CallContext,
  cause: unknown,
  saidBy: readonly unknown[] = [cause],
): TransactionAbortedError {
  const [why = 'its connection to Postgres failed before COMMIT took effect.'] = saidBy.flatMap(
    (error) => CLOSED.get(database.sqlState(error) ?? '') ?? [],
  );
  return new TransactionAbortedError(leases.key, 'connection', why, cause);
}

/**
 * Replaces the driver's error of a connection that was closed during the work, which tells nothing. Any other error is
 * returned unchanged, such as one of the caller's function.
 *
 * @param failure the first failure of a statement.
 */
export function fromClosedConnection(error: unknown, call: CallContext, closedBy: unknown, failure: unknown): unknown {
  const { database } = call;
  if (error instanceof FencedLockError || !isLoss(database, error) || database.isStatementError(failure)) return error;
  return connectionClosed(call, error, [closedBy, failure]);
}

/** The error of a transaction whose COMMIT was cancelled, or refused: by a trigger, a constraint or a conflict. */
export function commitFailed(key: string, error: unknown, code?: string): TransactionAbortedError {
  const why =
    code === SERIALIZATION_FAILURE || code === DEADLOCK
      ? `a concurrent transaction is in conflict with it, so Postgres refused its COMMIT (${code}). Run it again: the option \`retries\` does.`
      : 'Postgres answered its COMMIT with an error. Deferred constraints and triggers run in COMMIT. See the cause.';
  return new TransactionAbortedError(key, 'failed-statement', why, error);
}

/** The error of a transaction that Postgres had aborted before its COMMIT. `failure`: the first failed statement. */
export function statementFailed(key: string, failure: unknown): TransactionAbortedError {
  const why =
    'a statement in it had failed, which aborts the whole transaction in Postgres, and its function did not ' +
    'pass that error on. See the cause.';
  return new TransactionAbortedError(key, 'failed-statement', why, failure);
}

/** The error of a transaction whose COMMIT was still running when this client ended its backend. */
export function commitTooSlow(key: string, timeout: number, least: number): TransactionAbortedError {
  const why =
    `its COMMIT had not ended within its timeout of ${timeout} ms, of which COMMIT gets at least ${least} ms. ` +
    'Deferred constraints and triggers run in COMMIT. Make them shorter, or raise `timeout`.';
  return new TransactionAbortedError(key, 'timeout', why);
}
