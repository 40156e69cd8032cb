import { type ErrorDetails, FencedLockError } from './error.js';
import { quoted } from './thrown.js';

/** The call would leave the transaction in whose function it was made. */
export class InsideTransactionError extends FencedLockError {
  static override readonly code = 'INSIDE_TRANSACTION';
  constructor(what: string, details: ErrorDetails = {}) {
    super('INSIDE_TRANSACTION', what, details);
  }
}

/** What is only there inside the function of a lock was asked for elsewhere. */
export class OutsideLockError extends FencedLockError {
  static override readonly code = 'OUTSIDE_LOCK';
  constructor(what: string, details: ErrorDetails = {}) {
    super('OUTSIDE_LOCK', what, details);
  }
}

/** The key is held by the function in which the call was made, so the call would wait for itself. */
export class ReentryError extends FencedLockError {
  static override readonly code = 'REENTRY';
  constructor(key: string) {
    super(
      'REENTRY',
      `The lock ${quoted(key)} was requested inside its own function, so the call would wait for itself. A \`withLock\` of the ` +
        'same client (in Prisma, each `$extends` makes another one) joins one that has all of its keys, unless ' +
        "`reentry: 'throw'` is set; no call joins a handle. Pass on what the outer function is given, or take all keys in the " +
        'outermost call.',
      { key },
    );
  }
}

/** Another key is held by the function in which the call was made. */
export class NestedError extends FencedLockError {
  static override readonly code = 'NESTED';
  constructor(key: string, outer: string) {
    super(
      'NESTED',
      `The lock ${quoted(key)} was requested inside the lock ${quoted(outer)}, which holds a connection and keeps other ` +
        "callers waiting meanwhile. Take both keys in the outer call, or set `nested: 'allow'` in the options of the inner " +
        'call and make the pool large enough.',
      { key },
    );
  }
}

/** The transaction, the handle or the client has ended. The operation did nothing. */
export class ClosedError extends FencedLockError {
  static override readonly code = 'CLOSED';
  constructor(what: string, details: ErrorDetails = {}) {
    super('CLOSED', what, details);
  }
}

/** An option or a key cannot be used. The message names it and says what is allowed. */
export class InvalidOptionError extends FencedLockError {
  static override readonly code = 'INVALID_OPTION';
  /** The name of the option or the argument, such as `leaseTime`, `key` or `fn`; of a write, the model and the field: `Stock.fence`. */
  readonly option: string;

  constructor(option: string, problem: string) {
    super('INVALID_OPTION', `\`${option}\` ${problem}`);
    this.option = option;
  }
}
