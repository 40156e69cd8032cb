/** Where each error has a section of its own, by its code; the file is part of the package. */
const DOCS = 'docs/errors.md#';

/** Stable names of everything that can go wrong; compare these, not messages. */
export type FencedLockErrorCode =
  | 'LOCK_TIMEOUT'
  | 'LOCK_LOST'
  | 'STALE_TOKEN'
  | 'LOCK_UNAVAILABLE'
  | 'COMMIT_UNKNOWN'
  | 'TRANSACTION_ABORTED'
  | 'HOOK_FAILED'
  | 'INSIDE_TRANSACTION'
  | 'REENTRY'
  | 'NESTED'
  | 'NOT_INSTALLED'
  | 'INVALID_OPTION'
  | 'CLOSED';

export interface ErrorDetails {
  /** The key of the lock that the error is about. */
  readonly key?: string | undefined;
  /** The error beneath this one. */
  readonly cause?: unknown;
}

/** The base of every error that this package makes. The caller's own errors are never wrapped in one. */
export class FencedLockError extends Error {
  readonly code: FencedLockErrorCode;
  /** The key of the lock, or `undefined` where the error is about none. */
  readonly key: string | undefined;

  constructor(code: FencedLockErrorCode, message: string, details: ErrorDetails = {}) {
    super(`${message} (see ${DOCS}${code.toLowerCase()})`, details.cause === undefined ? {} : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.key = details.key;
  }

  /** Prisma makes an error of its own of one that reaches it from below, and keeps no more than its `code` and this. */
  get meta(): { readonly fencedLock: FencedLockError } {
    return { fencedLock: this };
  }
}

/**
 * The error of this package that `error` is, or that Prisma has made a `PrismaClientKnownRequestError` of; `undefined`
 * where it is neither. What a lock refuses inside its function arrives there in Prisma's form, with the same `code`.
 */
export function toFencedLockError(error: unknown): FencedLockError | undefined {
  if (error instanceof FencedLockError) return error;
  const ours = (error as { readonly meta?: { readonly fencedLock?: unknown } } | null | undefined)?.meta?.fencedLock;
  return ours instanceof FencedLockError ? ours : undefined;
}

/** The key was not free within the wait time. Nothing was done; trying again later is safe. */
export class LockTimeoutError extends FencedLockError {
  constructor(key: string, waited: string, cause?: unknown) {
    super(
      'LOCK_TIMEOUT',
      `The lock ${quoted(key)} was not free within ${waited}. Nothing was done: try again later, or raise waitTime.`,
      { key, cause },
    );
  }
}

/** How a lease came to an end before its work did. */
export type LossReason = 'expired' | 'gone' | 'overtaken';

const LOST_BECAUSE: Readonly<Record<LossReason, string>> = {
  expired: 'it was not renewed in time (Redis did not answer, this process stood still, or `renew` is off)',
  gone: 'Redis no longer has it for this holder',
  overtaken:
    'another holder, or an operator, has ended its transaction in Postgres, and Redis no longer has it for this one',
};

/** The lease ended before the work did, so the transaction was rolled back. */
export class LockLostError extends FencedLockError {
  /**
   * `expired`: it could not be renewed in time. `gone`: Redis no longer has it, or somebody else has. `overtaken`: the same,
   * and whoever has the key since, or an operator, has ended the transaction.
   */
  readonly reason: LossReason;

  constructor(key: string, reason: LossReason, cause?: unknown) {
    super(
      'LOCK_LOST',
      `The lease of the lock ${quoted(key)} was lost: ${LOST_BECAUSE[reason]}. A transaction that was under way was rolled back: run it ` +
        'again, with a longer leaseTime if this repeats. What a handle has committed before stays.',
      { key, cause },
    );
    this.reason = reason;
  }
}

/**
 * `superseded`: our key has a newer holder. `other-key`: the row was written under another key. `forgotten`: Postgres has no
 * row of our key any more, so nobody can say whether it has one.
 */
export type StaleReason = 'superseded' | 'other-key' | 'forgotten';

/** What is known of a refused write, beside the model. */
export interface StaleDetails {
  readonly reason?: StaleReason;
  /** The token that the row carries. */
  readonly fence?: bigint | undefined;
  /** The condition that the row was looked for by. */
  readonly where?: unknown;
  readonly cause?: unknown;
}

/** A row had been written with a higher fencing token than ours, so the write was refused. */
export class StaleTokenError extends FencedLockError {
  readonly reason: StaleReason;
  /** Our token. */
  readonly token: bigint;
  /** The token that the row carries, where it is known. */
  readonly fence: bigint | undefined;
  /**
   * The model whose row was fresher; its table, where the guard refused a write to one that is no model's. `undefined`
   * where a handle was refused before it wrote anything.
   */
  readonly model: string | undefined;
  /** The condition that the row was looked for by, where it is known. */
  readonly where: unknown;

  constructor(key: string, token: bigint, model: string | undefined, details: StaleDetails = {}) {
    const { reason = 'other-key', fence, where, cause } = details;
    const row = where === undefined ? `A row of ${model}` : `The row of ${model} where ${brief(where)}`;
    const unwritten = model === undefined ? 'Nothing was written' : `${row} was not written`;
    const carries =
      fence === undefined ? 'carries a higher fencing token than' : `carries the fencing token ${fence}, above`;
    const again = 'The transaction was rolled back: take the lock again, and read again what you go by.';
    const messages: Record<StaleReason, string> = {
      'other-key':
        `${row} ${carries} ${token}, the token of the lock ${quoted(key)}: it was written under another key. The ` +
        'transaction was rolled back: run it again (the option `retries` does), and lock all writers of a row by ' +
        'the same key.',
      superseded: `${unwritten}: the lock ${quoted(key)} has a newer holder than that of the token ${token}. ${again}`,
      forgotten:
        `${unwritten}: Postgres has no row of the lock ${quoted(key)} any more, for which the token ${token} was ` +
        `registered. It was deleted as idle (\`fenced-lock gc\`), or the database was restored. ${again}`,
    };
    super('STALE_TOKEN', messages[reason], { key, cause });
    this.reason = reason;
    this.token = token;
    this.fence = fence;
    this.model = model;
    this.where = where;
  }
}

/** Redis did not answer within the wait time, so nobody can say whether the key is free. */
export class LockUnavailableError extends FencedLockError {
  constructor(
    key: string | undefined,
    cause: unknown,
    server: 'Redis' | 'Postgres' = 'Redis',
    done = 'Nothing was done',
  ) {
    const whose = server === 'Redis' ? 'client given as `redis`' : "Prisma client's adapter";
    super(
      'LOCK_UNAVAILABLE',
      `${server} gave no usable answer about ${key === undefined ? 'its locks' : `the lock ${quoted(key)}`} in time` +
        `${reason(cause)}. ${done}: check the server, and the connection of the ${whose}.`,
      { key, cause },
    );
  }
}

/** The answer to COMMIT was lost and nobody can say any more whether it held. */
export class CommitUnknownError extends FencedLockError {
  /** The transaction's id in Postgres, for an administrator. */
  readonly xid: string;

  constructor(key: string, xid: string, cause: unknown) {
    super(
      'COMMIT_UNKNOWN',
      `The answer to COMMIT was lost under the lock ${quoted(key)} (transaction ${xid}), and Postgres could not tell ` +
        'its outcome. Read the rows to see whether the work is there before you run it again.',
      { key, cause },
    );
    this.xid = xid;
  }
}

/** The transaction was rolled back although the function did not say so. */
export class TransactionAbortedError extends FencedLockError {
  constructor(key: string, why: string, cause?: unknown) {
    super('TRANSACTION_ABORTED', `The transaction under the lock ${quoted(key)} was rolled back: ${why}`, {
      key,
      cause,
    });
  }
}

/**
 * The transaction has committed, and hooks of it failed. Only with `hookErrors: 'throw'`; the commit stands, so the work must
 * not run again.
 */
export class HookFailedError extends FencedLockError {
  /** What the function of the call returned. */
  readonly value: unknown;
  /** What the hooks threw, in the order in which they ran. `cause` is the first. */
  readonly errors: readonly unknown[];

  constructor(key: string, value: unknown, errors: readonly unknown[]) {
    super(
      'HOOK_FAILED',
      `The transaction under the lock ${quoted(key)} has committed, but ${errors.length === 1 ? 'a hook' : `${errors.length} hooks`} ` +
        `of it failed${reason(errors[0])}. The commit stands: do not run the work again. Its result is in \`value\`, what ` +
        'the hooks threw in `errors`.',
      { key, cause: errors[0] },
    );
    this.value = value;
    this.errors = errors;
  }
}

/** The call would leave the transaction that it stands in. */
export class InsideTransactionError extends FencedLockError {
  constructor(what: string, details: ErrorDetails = {}) {
    super('INSIDE_TRANSACTION', what, details);
  }
}

/** The key is already held by the function that this call stands in, and it would wait for itself. */
export class ReentryError extends FencedLockError {
  constructor(key: string) {
    super(
      'REENTRY',
      `The lock ${quoted(key)} was asked for inside its own function, and would wait for itself. Work on the client ` +
        'that the outer function was given, and pass it on. A `$withLock` of the same client joins one of the same keys, ' +
        "unless `reentry: 'throw'` is set; nothing joins a handle.",
      { key },
    );
  }
}

/** Another key is held by the function that this call stands in. */
export class NestedError extends FencedLockError {
  constructor(key: string, outer: string) {
    super(
      'NESTED',
      `The lock ${quoted(key)} was asked for inside that of ${quoted(outer)}, which holds a connection and keeps ` +
        "others waiting meanwhile. Take both keys in the outer call, or set `nested: 'allow'` and give the pool room for it.",
      { key },
    );
  }
}

/** The transaction, or the client, has ended: what was asked for was not sent. */
export class ClosedError extends FencedLockError {
  constructor(what: string, details: ErrorDetails = {}) {
    super('CLOSED', what, details);
  }
}

/** The database objects of this package are missing, or this role may not use them. */
export class NotInstalledError extends FencedLockError {
  constructor(cause: unknown) {
    super(
      'NOT_INSTALLED',
      'The schema `fenced_lock` is missing in this database, or this role may not use it. Run ' +
        '`npx fenced-lock init && npx prisma migrate deploy`; a role needs USAGE on the schema and EXECUTE on its ' +
        'functions. `npx fenced-lock doctor` says what is missing.',
      { cause },
    );
  }
}

/** An option or a key cannot be used. The message names it and says what would do. */
export class InvalidOptionError extends FencedLockError {
  /** The option's name, or `key`. */
  readonly option: string;

  constructor(option: string, problem: string) {
    super('INVALID_OPTION', `\`${option}\` ${problem}`);
    this.option = option;
  }
}

/** The code that the errors of each class have; those of the base class have any. */
const CODES = new Map<unknown, FencedLockErrorCode | undefined>([
  [FencedLockError, undefined],
  [LockTimeoutError, 'LOCK_TIMEOUT'],
  [LockLostError, 'LOCK_LOST'],
  [StaleTokenError, 'STALE_TOKEN'],
  [LockUnavailableError, 'LOCK_UNAVAILABLE'],
  [CommitUnknownError, 'COMMIT_UNKNOWN'],
  [TransactionAbortedError, 'TRANSACTION_ABORTED'],
  [HookFailedError, 'HOOK_FAILED'],
  [InsideTransactionError, 'INSIDE_TRANSACTION'],
  [ReentryError, 'REENTRY'],
  [NestedError, 'NESTED'],
  [ClosedError, 'CLOSED'],
  [NotInstalledError, 'NOT_INSTALLED'],
  [InvalidOptionError, 'INVALID_OPTION'],
]);

/** What the errors of every copy of this package have. */
const OURS = Symbol.for('prisma-extension-fenced-lock.error');
Object.defineProperty(FencedLockError.prototype, OURS, { value: true });

// One process may load this package as ESM and as CommonJS: `instanceof` holds for the errors of the other copy, too.
Object.defineProperty(FencedLockError, Symbol.hasInstance, {
  value(this: unknown, value: unknown): boolean {
    // A class that was derived from one of these.
    if (!CODES.has(this)) return Function.prototype[Symbol.hasInstance].call(this as typeof FencedLockError, value);
    if (typeof value !== 'object' || value === null || !(OURS in value)) return false;
    const code = CODES.get(this);
    return code === undefined || (value as { readonly code?: unknown }).code === code;
  },
});

/** A key as a message shows it: escaped, and never longer than a line. */
export function quoted(key: string): string {
  const text = JSON.stringify(key);
  return text.length > 120 ? `${text.slice(0, 117)}…"` : text;
}

/** What is beneath an error, and never longer than a few lines: logs often keep the message alone. */
function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return '';
  const text = cause.message.replace(/\.$/, '');
  return `: ${text.length > 300 ? `${text.slice(0, 299)}…` : text}`;
}

/** A condition as a message shows it. */
function brief(where: unknown): string {
  const text = JSON.stringify(where, (_, value) => (typeof value === 'bigint' ? String(value) : value)) ?? '';
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
