import { Deadline } from '../base/clock.js';
import { InsideTransactionError, TransactionAbortedError } from '../base/errors.js';
import type { Connection } from '../database/database.js';
import type { Admission } from './admission.js';
import type { CallContext } from './call.js';
import { OUTCOME_TIME, resolveOutcome } from './commit.js';
import type { Gate } from './gate.js';

/**
 * The end of a transaction inside its function, by SQL that is not the database client's. The gate refuses such SQL; this
 * is for what gets past it. Without it, work that was rolled back, or half committed, would be reported as committed.
 */
export class InnerEnd {
  readonly #call: CallContext;
  readonly #gate: Gate;
  /** The command tag of the statement that was answered outside of the transaction. */
  #tag: string | undefined;

  constructor(call: CallContext, gate: Gate) {
    this.#call = call;
    this.#gate = gate;
  }

  get isKnown(): boolean {
    return this.#tag !== undefined;
  }

  /** Whether a part of the work is committed, or ran outside the transaction. */
  get hasCommitted(): boolean {
    return this.isKnown && this.#tag !== 'ROLLBACK';
  }

  note(tag: string): void {
    this.#tag ??= tag;
  }

  /** Where the server says that an admitted transaction is over, and has not told how: asks what became of it. */
  async find({ isOver }: Connection, admission: Admission | undefined): Promise<void> {
    if (!isOver || admission === undefined || this.isKnown) return;
    const outcome = await resolveOutcome(this.#call.database.rescue, admission, new Deadline(OUTCOME_TIME));
    this.note(outcome === 'aborted' ? 'ROLLBACK' : 'COMMIT');
  }

  error(cause?: unknown): InsideTransactionError | TransactionAbortedError {
    const { key } = this.#call.leases;
    if (!this.hasCommitted) {
      const failure = this.#gate.failure?.error;
      return new TransactionAbortedError(key, 'ended', 'it had been ended before its function returned.', failure);
    }
    return new InsideTransactionError(
      'The transaction of the lock was ended inside its function, by a COMMIT that is not its own: what was written until ' +
        'then is committed, and nothing was sent after it. Return from the function to commit, or throw to roll back.',
      { key, cause: cause instanceof InsideTransactionError ? undefined : cause },
    );
  }
}
