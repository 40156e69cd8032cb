import { Backoff } from '../base/backoff.js';
import { Deadline, sleep } from '../base/clock.js';
import {
  type LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  NotInstalledError,
  StaleTokenError,
  TransactionAbortedError,
  toFencedLockError,
} from '../base/errors.js';
import { NotRun } from '../database/database.js';
import {
  DEADLOCK,
  LOCK_NOT_AVAILABLE,
  NOT_INSTALLED,
  NOT_SUPPORTED,
  QUERY_CANCELED,
  READ_ONLY,
  SERIALIZATION_FAILURE,
  TOO_MANY_CONNECTIONS,
} from '../database/sql-states.js';
import { Attempt } from './attempt.js';
import type { Call, CallContext, EarlierAttempts } from './call.js';

/** How many closed connections of the pool a call skips. It may begin again, because it was never admitted. */
const MOST_DISCONNECTS = 3;
/** First and longest pause before the work runs again, shortened by jitter; milliseconds. */
const FIRST_PAUSE = 2;
const LONGEST_PAUSE = 50;
/** First and longest pause before a connection is asked for again, where Postgres is away or has none left; milliseconds. */
const FIRST_CONNECT_PAUSE = 25;
const LONGEST_CONNECT_PAUSE = 500;
/** Pause before a cancelled admission is sent again, because Postgres may cancel it again at once; milliseconds. */
const CANCELED_PAUSE = 50;
/** SQLSTATEs after which an admission is sent again within the wait time. */
const MAY_BEGIN_AGAIN: ReadonlySet<string> = new Set([LOCK_NOT_AVAILABLE, QUERY_CANCELED, SERIALIZATION_FAILURE]);
const BLOCKED =
  ": another transaction has its row in Postgres: a former holder's, or one that this client may not end, " +
  'of another waiting room (another keyPrefix, or work without Redis) or of another role, or a COMMIT that waits for its ' +
  'synchronous standby';
const CANCELED =
  ': Postgres cancelled its admission. If a `statement_timeout` of the role is shorter than the wait for the ' +
  "key's row, raise it to a second";

/**
 * Runs the caller's work in a transaction that Postgres has admitted. Where `retries` allows it, a conflict that may
 * have passed makes the work run again in a new transaction with a new token.
 *
 * A lost lease, and the caller's signal, abort it. Closing the client aborts it until it is admitted.
 *
 * @returns the result of the work, only if its transaction has committed.
 */
export async function fencedTransaction<Tx, R>(call: Call<Tx, R>): Promise<R> {
  const { parts, leases, abort } = call;
  let repetition: Repetition | undefined;
  let attempt: Attempt<Tx, R> | undefined;
  const unfollow = abort.follow(call.options.signal);
  const user = { lost: (loss: LockLostError) => abort.abort(loss), beat: () => attempt?.beat() };
  leases.attach(user);
  if (leases.loss) abort.abort(leases.loss);
  const turnAway = (error: unknown) => {
    if (!repetition?.hasBegun && !attempt?.admitted) abort.abort(error);
  };
  const forget = call.whileClosing ? undefined : parts.room.untilAdmitted(leases.key, turnAway);
  try {
    for (let { opening } = call; ; opening = undefined) {
      attempt = new Attempt(call, opening, repetition?.earlier ?? {});
      try {
        return await attempt.run();
      } catch (error) {
        repetition ??= new Repetition(call);
        await repetition.after(error, { admitted: attempt.admitted, wasAhead: opening !== undefined });
      }
    }
  } finally {
    forget?.();
    unfollow();
    leases.detach(user);
  }
}

interface FailedAttempt {
  readonly admitted: boolean;
  /** Whether its transaction was opened ahead of the lease. */
  readonly wasAhead: boolean;
}

/**
 * Decides whether a call begins again after an attempt that has failed, and waits as long as it has to. Each method
 * resolves if there is to be another attempt, and throws what the call is rejected with if not.
 */
class Repetition {
  readonly #call: CallContext;
  /** How often the work has run. */
  #runs = 0;
  readonly #backoff = new Backoff(FIRST_PAUSE, LONGEST_PAUSE);
  readonly #connectBackoff = new Backoff(FIRST_CONNECT_PAUSE, LONGEST_CONNECT_PAUSE);
  /** Whether the work has begun in an earlier attempt. */
  hasBegun = false;
  earlier: EarlierAttempts = {};
  #disconnects = 0;
  #isCanceled = false;

  constructor(call: CallContext) {
    this.#call = call;
  }

  async after(error: unknown, { admitted, wasAhead }: FailedAttempt): Promise<void> {
    this.hasBegun ||= admitted;
    if (admitted) {
      await this.#runAgain(error);
      // The wait time anew: the next turn of this process may have begun, and have the key's row.
      const conflict = { error, deadline: new Deadline(this.#call.options.waitTime) };
      this.earlier = { ...this.earlier, conflict };
      return;
    }
    try {
      await this.#beginAgain(error, wasAhead);
    } catch (refusal) {
      const { conflict } = this.earlier;
      const isOverdue = refusal instanceof LockTimeoutError && !this.#call.abort.aborted;
      // The caller had the key. So it is told why its work was rolled back, and not that the key was not free.
      if (isOverdue && conflict) throw conflict.error;
      await this.#runAgain(refusal);
    }
  }

  /** After a conflict that may have passed, if `retries` allows it. */
  async #runAgain(error: unknown): Promise<void> {
    const { abort, leases, options, parts } = this.#call;
    if (this.#runs++ >= options.retries || !isRetryable(error, this.#call)) throw error;
    abort.throwIfAborted();
    if (leases.loss) throw error;
    // Callers of different keys that write the same row draw their tokens before they get the row, so the higher token
    // may refuse the lower one again and again. A run that was refused once locks the row first and draws its token then.
    const { model, where } = error instanceof StaleTokenError ? error : {};
    const staleRow = model === undefined ? undefined : parts.fencing.rowOf(model, where);
    this.earlier = { ...this.earlier, blocked: false, staleRow };
    this.#disconnects = 0;
    this.#isCanceled = false;
    // Jitter, so that two callers that met in a conflict do not meet again.
    await abort.race(sleep(this.#backoff.next() * Math.random()));
  }

  /**
   * Before the work has begun: the key's row is locked by another transaction, the snapshot is older than the previous
   * holder's commit, or the connection was closed.
   */
  async #beginAgain(error: unknown, wasAhead: boolean): Promise<void> {
    const { abort, database, leases, options, parts } = this.#call;
    const { deadline } = this.earlier.conflict ?? this.#call;
    abort.throwIfAborted();
    // Postgres may have closed an idle connection of the pool. Or the COMMIT that this transaction's BEGIN was sent
    // with failed, so Postgres skipped the BEGIN.
    const begins = database.isDisconnect(error) || error instanceof NotRun;
    if (begins && ++this.#disconnects <= MOST_DISCONNECTS) return;
    const code = database.sqlState(error);
    if (begins || code === TOO_MANY_CONNECTIONS || database.isUnavailable(error)) {
      if (deadline.passed) {
        throw new LockUnavailableError(leases.key, error, { server: 'Postgres', within: options.waitTime });
      }
      parts.emit({ type: 'postgres-unavailable', key: leases.key, error });
      // Jitter, so that the callers of a process do not all connect at once to a server that is starting.
      await abort.race(sleep(Math.min(this.#connectBackoff.next() * Math.random(), deadline.remaining)));
      return;
    }
    if (database.isEnded?.(error)) throw new LockUnavailableError(leases.key, error, { server: 'Postgres' });
    if (code !== undefined && NOT_INSTALLED.has(code)) throw new NotInstalledError(error, code);
    // On a standby, the admission fails where it reads the UNLOGGED table of the crash epoch.
    if (code === READ_ONLY || code === NOT_SUPPORTED) {
      throw new LockUnavailableError(leases.key, error, { server: 'Postgres', isReadOnly: true });
    }
    if (code === undefined || !MAY_BEGIN_AGAIN.has(code)) throw toFencedLockError(error) ?? error;
    // An admission that was sent ahead waits only some milliseconds, perhaps for this call's own ROLLBACK, so its timeout
    // does not show a blocking transaction.
    if (code !== SERIALIZATION_FAILURE && !wasAhead) this.earlier = { ...this.earlier, blocked: true };
    this.#isCanceled ||= code === QUERY_CANCELED;
    if (deadline.passed && !wasAhead) {
      const why = this.#isCanceled ? CANCELED : this.earlier.blocked ? BLOCKED : '';
      throw new LockTimeoutError(leases.key, `${options.waitTime} ms${why}`, error);
    }
    if (code === QUERY_CANCELED) await abort.race(sleep(Math.min(CANCELED_PAUSE, deadline.remaining)));
  }
}

function isRetryable(error: unknown, { database }: CallContext): boolean {
  // A handle's token never rises, so the same row would refuse it again.
  if (error instanceof StaleTokenError) return error.reason === 'other-key' && !error.ofHandle;
  // A conflict at COMMIT, or in a statement whose error the function did not pass on.
  const isWrapped = error instanceof TransactionAbortedError && error.reason === 'failed-statement';
  const code = database.sqlState(isWrapped ? error.cause : error);
  return code === SERIALIZATION_FAILURE || code === DEADLOCK;
}
