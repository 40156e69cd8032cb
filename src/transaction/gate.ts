import { InsideTransactionError } from '../base/errors.js';

/**
 * All operations of a transaction pass this gate. It refuses transaction control, counts operations in flight, remembers
 * the first failure, and can be shut. A shut gate refuses new operations. Operations in flight are waited for: Prisma
 * would otherwise send ROLLBACK or COMMIT between the statements of an operation, and the rest would run outside the
 * transaction.
 */
export class Gate {
  readonly #leases: { readonly key: string; readonly loss: unknown };
  #inFlight = 0;
  #beats = 0;
  #shut: (() => unknown) | undefined;
  #failure: unknown;
  #failed = false;
  #idle: Array<() => void> = [];

  constructor(leases: { readonly key: string; readonly loss: unknown }) {
    this.#leases = leases;
  }

  /** The first error of an operation, even if the caller's function swallowed it. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failed ? { error: this.#failure } : undefined;
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
   * @throws InsideTransactionError for transaction control, or the error of a shut gate.
   */
  enter(text?: string): void {
    if (text !== undefined) {
      refuseControl(text, this.#leases.key);
      // After a pause of the process, replies and closed sockets are handled before overdue timers. Reading `loss` checks
      // the clock, so an expired lease aborts the work now, and the caller gets that error instead of a follow-up error.
      void this.#leases.loss;
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

  /** The same for a statement that this package sends beside the caller's function. */
  enterBeat(): void {
    this.enter();
    this.#beats++;
  }

  leaveBeat(): void {
    this.#beats--;
    this.leave();
  }

  fail(error: unknown): void {
    if (!this.#failed) this.#failure = error;
    this.#failed = true;
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

/** @throws InsideTransactionError for a statement that would end the transaction. */
function refuseControl(sql: string, key: string): void {
  const control = transactionControl(sql);
  if (control === undefined) return;
  throw new InsideTransactionError(
    `Raw SQL under the lock must not end its transaction, and this begins with ${control}. ` +
      'Return from the function to commit, or throw to roll back.',
    { key },
  );
}

/** Skips blanks, comments and empty statements before the first word. Block comments nest in Postgres. */
function beginOf(sql: string): string {
  let at = 0;
  for (;;) {
    const blank = /^[\s;(]+/.exec(sql.slice(at, at + 1_000))?.[0].length ?? 0;
    at += blank;
    if (sql.startsWith('--', at)) {
      // In Postgres, a carriage return alone ends a line comment.
      const length = sql.slice(at).search(/[\r\n]/);
      if (length < 0) return '';
      at += length;
    } else if (sql.startsWith('/*', at)) {
      at = blockCommentEnd(sql, at);
    } else if (blank === 0) {
      return sql.slice(at, at + 1_000);
    }
  }
}

function blockCommentEnd(sql: string, start: number): number {
  let depth = 0;
  for (let at = start; at < sql.length; at++) {
    const pair = sql.slice(at, at + 2);
    if (pair === '/*') depth++;
    else if (pair === '*/') depth--;
    else continue;
    at++;
    if (depth === 0) return at + 1;
  }
  return sql.length;
}

/** Words that end the transaction or begin another one. Savepoints stay inside it. */
const CONTROL = /^(BEGIN|COMMIT|END|ABORT|START|ROLLBACK|PREPARE)\b/i;

/**
 * Returns the first word of a statement that is transaction control, `undefined` for any other. One statement is
 * enough: the extended protocol takes only one.
 */
export function transactionControl(sql: string): string | undefined {
  // Most statements are Prisma's own, which begin with one of these words.
  if (/^(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(sql)) return undefined;
  const text = beginOf(sql);
  const word = CONTROL.exec(text)?.[0].toUpperCase();
  if (word === 'ROLLBACK' && hasNext(text, /^(?:(?:WORK|TRANSACTION)\b)?/i, /^TO\b/i)) return undefined;
  if (word === 'PREPARE' && !hasNext(text, /^/, /^TRANSACTION\b/i)) return undefined;
  return word;
}

/** Whether the word after the first one, or after an optional second one, is the wanted one. */
function hasNext(text: string, optional: RegExp, wanted: RegExp): boolean {
  const second = beginOf(text.replace(/^\w+/, ''));
  return wanted.test(second) || wanted.test(beginOf(second.replace(optional, '')));
}
