import { InsideTransactionError } from '../base/errors.js';
import { withoutInnermost, withoutNoise } from '../base/sql-text.js';

/**
 * All operations of a transaction pass this gate. It refuses transaction control and COPY … FROM STDIN, counts operations
 * in flight, remembers the first failure, and can be shut. A shut gate refuses new operations. Operations in flight are
 * waited for: Prisma would otherwise send ROLLBACK or COMMIT between the statements of an operation, and the rest would
 * run outside the transaction.
 */
export class Gate {
  /** The first error of an operation, even if the caller's function swallowed it. */
  failure: { readonly error: unknown } | undefined;
  readonly #leases: { readonly key: string; checkExpiry(): void };
  #inFlight = 0;
  #beats = 0;
  #shut: (() => unknown) | undefined;
  #idle: Array<() => void> = [];

  constructor(leases: { readonly key: string; checkExpiry(): void }) {
    this.#leases = leases;
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
      const refused = refusedCommand(text);
      if (refused !== undefined) throw refusal(refused, this.#leases.key);
      // After a pause of the process, replies and closed sockets are handled before overdue timers. An expired lease aborts
      // the work now, so the caller gets that error instead of a follow-up error.
      this.#leases.checkExpiry();
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
