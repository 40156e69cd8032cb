import { Deadline } from '../base/clock.js';
import {
  InsideTransactionError,
  InvalidOptionError,
  StaleTokenError,
  TransactionAbortedError,
} from '../base/errors.js';
import { withoutInnermost, withoutNoise } from '../base/sql-text.js';
import type { Connection, Passage } from '../database/database.js';
import { fromGuard } from '../fencing/refusal.js';
import type { Admission } from './admission.js';
import type { CallContext } from './call.js';
import { OUTCOME_TIME, resolveOutcome } from './commit.js';

/**
 * All operations of an admitted transaction pass this gate. It refuses transaction control and COPY … FROM STDIN, counts
 * operations in flight, and can be shut. A shut gate refuses new operations. Operations in flight are waited for: Prisma would
 * otherwise send ROLLBACK or COMMIT between the statements of an operation, and the rest would run outside the transaction.
 *
 * It remembers what forbids a commit, even if the caller's function swallowed the error: a write that was refused, and an end
 * of the transaction by SQL that is not the database client's and got past the gate. Without that, work that was rolled back,
 * or half committed, would be reported as committed.
 */
export class Gate implements Passage {
  /** The first error of an operation. */
  failure: { readonly error: unknown } | undefined;
  readonly #call: CallContext;
  readonly #admission: Admission;
  #inFlight = 0;
  #beats = 0;
  #shut: (() => unknown) | undefined;
  #idle: Array<() => void> = [];
  /** The error of the first write that was refused, and not sent or without effect. */
  #refusal: StaleTokenError | InvalidOptionError | undefined;
  /** The command tag of the statement that was answered outside of the transaction. */
  #endTag: string | undefined;

  constructor(call: CallContext, admission: Admission) {
    this.#call = call;
    this.#admission = admission;
  }

  get busy(): boolean {
    return this.#inFlight > 0;
  }

  /** Whether operations of the caller's function are in flight. */
  get isAtWork(): boolean {
    return this.#inFlight > this.#beats;
  }

  get isShut(): boolean {
    return this.#shut !== undefined;
  }

  /**
   * Counts an operation that begins; each `enter` needs one `leave`. `text`: the statement, if it is one of the work.
   *
   * @throws InsideTransactionError for transaction control and for COPY … FROM STDIN, or the error of a shut gate.
   */
  enter(text?: string): void {
    if (text !== undefined) {
      const { leases } = this.#call;
      const refused = refusedCommand(text);
      if (refused !== undefined) throw refusal(refused, leases.key);
      // After a pause of the process, replies and closed sockets are handled before overdue timers. An expired lease aborts
      // the work now, so the caller gets that error instead of a follow-up error.
      void leases.loss;
    }
    this.throwIfShut();
    this.#inFlight++;
  }

  throwIfShut(): void {
    if (this.#shut) throw this.#shut();
  }

  leave(): void {
    this.#inFlight--;
    if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  failed(error: unknown): unknown {
    void this.#call.leases.loss;
    const named = this.refused(error);
    this.fail(named);
    this.leave();
    return named;
  }

  ended(tag: string): void {
    this.#endTag ??= tag;
    this.shut(() => this.endError());
  }

  /** Sends a statement of this package. `isBeat`: beside the caller's function, which it does not count as. */
  async pass<T>(send: () => Promise<T>, isBeat = false): Promise<T> {
    this.enter();
    if (isBeat) this.#beats++;
    try {
      return await send();
    } catch (error) {
      this.fail(error);
      throw error;
    } finally {
      if (isBeat) this.#beats--;
      this.leave();
    }
  }

  fail(error: unknown): void {
    this.failure ??= { error };
  }

  /** Returns the error of a write as the caller gets it, and keeps it if the write was refused. */
  refused(error: unknown): unknown {
    const named = this.named(error);
    if (named instanceof StaleTokenError || named instanceof InvalidOptionError) this.#refusal ??= named;
    return named;
  }

  /** A refusal of the guard as a StaleTokenError; any other error as it is. */
  named(error: unknown): unknown {
    const { database, leases, parts, registered } = this.#call;
    const { token } = this.#admission;
    const ofHandle = registered !== undefined;
    return fromGuard(error, database, { key: leases.key, token, ofHandle, fencing: parts.fencing });
  }

  /** Refuses operations from now on with `error()`. The first call decides. */
  shut(error: () => unknown): void {
    this.#shut ??= error;
  }

  /** Resolves when no operation is in flight. */
  idle(): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
    });
  }

  /** Throws what forbids a commit. */
  throwIfRefused(): void {
    if (this.#refusal) throw this.#refusal;
    if (this.#endTag !== undefined) throw this.endError();
  }

  /** Where the server says that the transaction is over, and has not told how: asks what became of it. */
  async findEnd({ isOver }: Connection): Promise<void> {
    if (!isOver || this.#endTag !== undefined) return;
    const outcome = await resolveOutcome(this.#call.database.rescue, this.#admission, new Deadline(OUTCOME_TIME));
    this.#endTag ??= outcome === 'aborted' ? 'ROLLBACK' : 'COMMIT';
  }

  /** Whether its own SQL has committed a part of the work, or a part ran outside the transaction. */
  get hasCommitted(): boolean {
    return this.#endTag !== undefined && this.#endTag !== 'ROLLBACK';
  }

  endError(cause?: unknown): InsideTransactionError | TransactionAbortedError {
    const { key } = this.#call.leases;
    if (!this.hasCommitted) {
      const why = 'it had been ended before its function returned.';
      return new TransactionAbortedError(key, 'ended', why, this.failure?.error);
    }
    return new InsideTransactionError(
      'The transaction of the lock was ended inside its function, by a COMMIT that is not its own: what was written until ' +
        'then is committed, and nothing was sent after it. Return from the function to commit, or throw to roll back.',
      { key, cause: cause instanceof InsideTransactionError ? undefined : cause },
    );
  }
}

/** Why a statement is refused that does not end the transaction. */
const OTHER_REASONS: Readonly<Record<string, string>> = {
  RESET:
    'Raw SQL under the lock must not reset all settings: the token and the time limits of the lock are among them. RESET ' +
    'those that you have set, by their names.',
  COPY:
    'Raw SQL under the lock cannot send the rows of COPY … FROM STDIN: the server would wait for them, and not ' +
    'answer ROLLBACK. Use createMany, or INSERT … SELECT … FROM unnest($1::int[], $2::text[]).',
};

/** The error for a statement that would end the transaction, or that gets no answer. */
function refusal(refused: string, key: string): InsideTransactionError {
  return new InsideTransactionError(
    OTHER_REASONS[refused] ??
      `Raw SQL under the lock must not end its transaction, and this begins with ${refused}. ` +
        'Return from the function to commit, or throw to roll back.',
    { key },
  );
}

/** How nearly every statement begins, so that it need not be searched. */
const USUAL = /^(?:SELECT|INSERT|UPDATE|DELETE) /;
/**
 * The first words of a statement that ends the transaction or begins another one, that resets all settings, or that
 * copies. Savepoints stay inside the transaction.
 */
const REFUSED =
  /^[\s;(]*(?:(BEGIN|COMMIT|END|ABORT|START|COPY)\b|(ROLLBACK)\b(?!(?:\s+(?:WORK|TRANSACTION))?\s+TO\b)|(PREPARE)\s+TRANSACTION\b|(RESET)\s+ALL\b)/i;
/** In Postgres, STDOUT stands for STDIN here. */
const FROM_STDIN = /\bfrom\s+std(?:in|out)\b/i;

/**
 * Returns the first word of a statement that is refused, `undefined` for any other. One statement is enough: the extended
 * protocol takes only one. What it does not find is noticed when the server says that the transaction is over.
 */
export function refusedCommand(sql: string): string | undefined {
  if (USUAL.test(sql)) return undefined;
  const text = withoutNoise(sql);
  const word = REFUSED.exec(text)?.slice(1).find(Boolean)?.toUpperCase();
  if (word !== 'COPY') return word;
  // A query in parentheses may read from a table with the name `stdin`.
  return FROM_STDIN.test(withoutInnermost(text, /\([^()]*\)/g)) ? word : undefined;
}
