import { briefCause, plain } from './json.js';

/** The documentation, where it is installed: this package has no site. */
export const DOCS = 'node_modules/prisma-extension-fenced-lock/docs/';

/** The stable codes of all errors. Compare these, not messages. */
export type FencedLockErrorCode =
  | 'LOCK_TIMEOUT'
  | 'LOCK_LOST'
  | 'STALE_TOKEN'
  | 'LOCK_UNAVAILABLE'
  | 'COMMIT_UNKNOWN'
  | 'TRANSACTION_ABORTED'
  | 'HOOK_FAILED'
  | 'INSIDE_TRANSACTION'
  | 'OUTSIDE_LOCK'
  | 'REENTRY'
  | 'NESTED'
  | 'NOT_INSTALLED'
  | 'INVALID_OPTION'
  | 'CLOSED';

export interface ErrorDetails {
  /** The key of the lock that the error is about. */
  readonly key?: string | undefined;
  /** The error that caused this one. */
  readonly cause?: unknown;
  /** The page of the documentation that the message names. Default: the section of the code in `errors.md`. */
  readonly page?: string | undefined;
}

/** The base class of all errors of this package. The caller's own errors are never wrapped. */
export class FencedLockError extends Error {
  readonly code: FencedLockErrorCode;
  /** The key of the lock; `undefined` if the error is not about a lock. */
  readonly key: string | undefined;

  constructor(code: FencedLockErrorCode, message: string, details: ErrorDetails = {}) {
    const { key, cause, page = `errors.md#${code.toLowerCase()}` } = details;
    super(`${message} (see ${DOCS}${page})`, cause === undefined ? {} : { cause });
    this.name = CLASSES.get(new.target)?.name ?? new.target.name;
    this.code = code;
    this.key = key;
  }

  /** Prisma replaces an error that is thrown below it by its own, and keeps only `code` and `meta`. */
  get meta(): { readonly fencedLock: FencedLockError } {
    return { fencedLock: this };
  }

  /**
   * What `JSON.stringify` shows: name, code, key, message, the fields of the class, and the cause's name, message and code.
   * Bigints, also inside of `where` and `value`, are decimal strings. Without the stack. Never throws.
   */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, key, message, cause } = this;
    const shown = { name, code, key, message, ...(cause === undefined ? {} : { cause: briefCause(cause) }) };
    // The fields of a subclass, too. The stack is for logs that print errors themselves.
    const { stack: _, ...fields } = this;
    return plain({ ...shown, ...fields, ...shown }) as Record<string, unknown>;
  }
}

/**
 * Returns the error of this package that `error` is, or that Prisma has wrapped in a `PrismaClientKnownRequestError`
 * with the same `code`; otherwise `undefined`. Errors inside the lock's function arrive in Prisma's form.
 */
export function toFencedLockError(error: unknown): FencedLockError | undefined {
  if (error instanceof FencedLockError) return error;
  const wrapper = error as { readonly meta?: { readonly fencedLock?: unknown } | null } | null | undefined;
  const ours = tryRead(() => wrapper?.meta?.fencedLock);
  return ours instanceof FencedLockError ? ours : undefined;
}

/** Who had a key when it was last looked for. */
export interface SeenHolder {
  /** The name of its process (the option `name`); `undefined` where the store does not say. */
  readonly process: string | undefined;
  /** Whether it is another caller of this very process. */
  readonly here: boolean;
  /** Whether that caller is a handle; known of this process alone. */
  readonly isHandle?: boolean;
  /** For how long it has been known to have the key; milliseconds. */
  readonly heldFor: number;
  /** How long its lease stands yet, if it is not renewed, or has not been since; milliseconds. */
  readonly expiresIn: number;
}

/** The key was not free within the wait time. Nothing was done; trying again later is safe. */
export class LockTimeoutError extends FencedLockError {
  /**
   * The name of the process that had the key when it was last looked for (its option `name`, by default `hostname:pid`).
   * `undefined` where that is not known: the process runs an older version, the key was just being passed on, or what was
   * waited for was a transaction in Postgres.
   */
  readonly holder: string | undefined;
  /** Since when that holder has been known to have the key; it may have had it before. */
  readonly since: Date | undefined;
  /** Milliseconds until its lease ends by itself, as of when it was last seen: a holder that lives renews it. */
  readonly expiresIn: number | undefined;

  constructor(key: string, waited: string, cause?: unknown, seen?: SeenHolder) {
    super(
      'LOCK_TIMEOUT',
      `The lock ${quoted(key)} was not free within ${waited}.${seen ? ` ${held(seen)}` : ''} Nothing was done: try again ` +
        'later, or raise `waitTime`.',
      { key, cause },
    );
    this.holder = seen?.process;
    this.since = seen && new Date(Date.now() - seen.heldFor);
    this.expiresIn = seen && Math.ceil(seen.expiresIn);
  }
}

/** How a lease ended before its work did. */
export type LossReason = 'expired' | 'gone';

/** A handle may have no transaction under way. */
const IF_OPEN = 'If a transaction was open under it, that was rolled back: run it again';
const WHAT_STAYS = 'What a handle has committed before stays.';
/** Redis, or a `memoryStore()`. */
const STORE = 'the store given as `redis`';

/** Why a lease was lost, and what to do. */
const LOST_BECAUSE: Readonly<Record<LossReason, (cause: unknown) => string>> = {
  expired: (cause) =>
    `it was not renewed in time${reason(cause) || ` (${STORE} did not answer, this process was paused, or \`renew\` is off)`}. ` +
    `${IF_OPEN}, with a longer \`leaseTime\` if this repeats. ${WHAT_STAYS}`,
  gone: () =>
    `${STORE} no longer has it for this holder. It had expired there, was lost there (by a restart, a flush or a ` +
    `failover), somebody took it by force (\`fenced-lock unlock\`, \`forceRelease\`), or another process has resumed the ` +
    `handle (\`$resumeLock\`). ${IF_OPEN}. ${WHAT_STAYS}`,
};
const REFUSED_BY_POSTGRES = `Postgres has refused its token (see the cause). ${IF_OPEN}, under a lock that is taken anew. ${WHAT_STAYS}`;

/** The lease ended before the work did. A transaction that was open under it was rolled back. */
export class LockLostError extends FencedLockError {
  /**
   * `expired`: the lease was not renewed in time. `gone`: Redis (or the `memoryStore()`) does not have it any more, or has another
   * holder.
   */
  readonly reason: LossReason;

  constructor(key: string, reason: LossReason, cause?: unknown) {
    const why = cause instanceof StaleTokenError ? REFUSED_BY_POSTGRES : LOST_BECAUSE[reason](cause);
    super('LOCK_LOST', `The lease of the lock ${quoted(key)} was lost: ${why}`, { key, cause });
    this.reason = reason;
  }
}

/**
 * `superseded`: the key has a newer holder. `other-key`: the row was written under another key. `forgotten`: Postgres
 * has no row of the key any more, so it is unknown whether there was a newer holder. `hidden-rows`: a TRUNCATE cannot see all
 * rows, so it is unknown whether one of them is fresher.
 */
export type StaleReason = 'superseded' | 'other-key' | 'forgotten' | 'hidden-rows';

/** What is known about a refused write, beside the model. */
export interface StaleDetails {
  readonly reason?: StaleReason;
  /** The fencing token of the row. */
  readonly fence?: bigint | undefined;
  /** The condition by which the row was looked for. */
  readonly where?: unknown;
  /** Whether the token is a handle's. */
  readonly ofHandle?: boolean;
  readonly cause?: unknown;
}

/** A row has a higher fencing token than the caller's, so the write was refused. */
export class StaleTokenError extends FencedLockError {
  readonly reason: StaleReason;
  /** The caller's token. */
  readonly token: bigint;
  /** The fencing token of the row, if known. */
  readonly fence: bigint | undefined;
  /**
   * The model whose row was fresher, or its table if no model has that table. `undefined` if a handle's token was
   * refused before any write.
   */
  readonly model: string | undefined;
  /** The condition by which the row was looked for, if known. */
  readonly where: unknown;
  /** Whether `token` is a handle's. A handle keeps its token, so running its transaction again would fail again. */
  readonly ofHandle: boolean;

  constructor(key: string, token: bigint, model: string | undefined, details: StaleDetails = {}) {
    const { reason = 'other-key', fence, where, ofHandle = false, cause } = details;
    const row = where === undefined ? `A row of ${model}` : `The row of ${model} where ${brief(where)}`;
    const unwritten = model === undefined ? 'Nothing was written' : `${row} was not written`;
    const carries =
      fence === undefined ? 'carries a higher fencing token than' : `carries the fencing token ${fence}, above`;
    const again = 'The transaction was rolled back: take the lock again, and read again the data that you decide by.';
    const messages: Record<StaleReason, string> = {
      'other-key':
        `${row} ${carries} ${token}, the token of the ${ofHandle ? 'handle of the ' : ''}lock ${quoted(key)}: it was ` +
        `written under another key. The transaction was rolled back${
          ofHandle
            ? '. To run it again does not help, because a handle keeps its token: release the handle and take it again. ' +
              'To avoid this, take a handle of several keys, those of all writers of the row.'
            : ': run it again (the option `retries` does), and lock all writers of a row by the same key. If it is refused each ' +
              'time, `npx fenced-lock doctor` says why.'
        }`,
      superseded: `${unwritten}: the lock ${quoted(key)} has a newer holder than the one with the token ${token}. ${again}`,
      forgotten:
        `${unwritten}: Postgres has no row of the lock ${quoted(key)} any more, in which the token ${token} was ` +
        `registered. It was deleted as idle (\`fenced-lock gc\`), or the database was restored. ${again}`,
      'hidden-rows':
        `TRUNCATE of ${model} was refused: rows that it cannot see may carry a higher fencing token than ${token}, the token of the ` +
        `lock ${quoted(key)}. The transaction was rolled back, and to run it again does not help: run it as READ COMMITTED, by a ` +
        'role from which no policy of row-level security hides rows, or write DELETE in place of TRUNCATE.',
    };
    super('STALE_TOKEN', messages[reason], { key, cause });
    this.reason = reason;
    this.token = token;
    this.fence = fence;
    this.model = model;
    this.where = where;
    this.ofHandle = ofHandle;
  }
}

/** What is known about a server that gave no usable answer, and what to say of it. */
export interface UnavailableDetails {
  /** Default: `Redis`. */
  readonly server?: 'Redis' | 'Postgres';
  /** What the call has done so far. Default: `Nothing was done`. */
  readonly done?: string | undefined;
  /** For how long the server was asked in vain; milliseconds. */
  readonly within?: number;
  /** How often it was asked in that time. */
  readonly tries?: number;
  /** Whether the database takes no writes. */
  readonly isReadOnly?: boolean;
}

/** The reason, as `reason` gives it, of a server that refused the user or the password. */
const REFUSED_LOGIN = /^: (WRONGPASS|NOAUTH)\b/;

/** What to do about a client that was closed. */
const REOPEN = {
  Redis:
    'close it (`disconnect`, `quit`) after the last lock, let its `retryStrategy` not give up, or call its `connect()`',
  Postgres: 'end the pool after the last lock',
};

/** The reason of a client that does not connect any more, and why it could not, if that is known. */
const CLOSED_CLIENT = /^: (?:the client is closed(?<failure>: .*)?|Cannot use a pool after calling end.*)$/s;

/** What to do about a database that takes no writes, and so admits no transaction. */
const TO_WRITABLE =
  "connect the Prisma client's adapter to the writable primary, and look whether somebody, or a full disk, has made the " +
  'database read-only (`default_transaction_read_only`)';

const UNSET_ADDRESS =
  ' If that is not your address, `connectionString` was not set: is `DATABASE_URL` loaded, as by `dotenv`?';
/** Where pg connects if it is given no address. */
const DEFAULT_ADDRESS = /(?<![\w.:])(?:127\.0\.0\.1|localhost|::1):5432\b/;

/**
 * A server did not answer within the wait time, or cannot be asked, so it is unknown whether the key is free. Or the database
 * is read-only.
 */
export class LockUnavailableError extends FencedLockError {
  /** The server that gave no usable answer. */
  readonly server: 'Redis' | 'Postgres';

  constructor(key: string | undefined, cause: unknown, details: UnavailableDetails = {}) {
    const { server = 'Redis', done = 'Nothing was done', isReadOnly = false } = details;
    const whose = server === 'Redis' ? 'client given as `redis`' : "Prisma client's adapter";
    const locks = key === undefined ? 'its locks' : `the lock ${quoted(key)}`;
    const about = `about ${locks}`;
    const why = reason(cause);
    const closed = CLOSED_CLIENT.exec(why);
    super(
      'LOCK_UNAVAILABLE',
      closed !== null
        ? `The ${whose} was closed, so ${server} was not asked ${about}${closed.groups?.['failure'] ?? ''}. ${done}: ${REOPEN[server]}.`
        : REFUSED_LOGIN.test(why)
          ? `${server} refused the login of the ${whose}, and so gave no answer ${about}${why}. ${done}.`
          : isReadOnly
            ? `The database is read-only, so ${server} admits no holder of ${locks}${why}. ${done}: ${TO_WRITABLE}.`
            : `${server} gave no usable answer ${about}${inTime(details)}${why}. ${done}: check the server, and the connection ` +
              `of the ${whose}.${server === 'Postgres' && DEFAULT_ADDRESS.test(why) ? UNSET_ADDRESS : ''}`,
      { key, cause },
    );
    this.server = server;
  }
}

/** The answer to COMMIT was lost, and it cannot be found out whether the transaction has committed. */
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

/** What to do about an operation that the function did not wait for. */
const AWAIT_ALL = 'Await every operation, and every helper that works on `tx`.';
const HOW_TO_AWAIT = 'locks.md#await-every-operation';

/**
 * `timeout`: the work, its COMMIT, or a call that joined it, had not ended in time. `connection`: the connection to Postgres failed, or
 * Postgres closed it. `failed-statement`: a statement had failed, and the function went on, or COMMIT itself. `inner-call`: one of two calls
 * that share the transaction had failed. `not-awaited`: the function did not wait for something that it began.
 * `skipped-operation`: Prisma had not sent an operation, because another one of the same batch had failed. `ended`: SQL of
 * the function had ended the transaction.
 */
export type AbortReason =
  | 'timeout'
  | 'connection'
  | 'failed-statement'
  | 'inner-call'
  | 'not-awaited'
  | 'skipped-operation'
  | 'ended';

/** Why a transaction was rolled back whose work had a timeout of so many milliseconds. */
export function overdue(timeout: number, isPoolWaitedFor = false): string {
  const second = isPoolWaitedFor
    ? ' Somebody waits for a connection of the pool. If it is the function itself, by an operation on the client in place of `tx`: use `tx`.'
    : '';
  return `it had not ended within its timeout of ${timeout} ms.${second} Make the work shorter, or raise \`timeout\`.`;
}

/** The transaction was rolled back although the function did not throw. */
export class TransactionAbortedError extends FencedLockError {
  readonly reason: AbortReason;

  constructor(key: string, reason: AbortReason, why: string, cause?: unknown, page?: string) {
    super('TRANSACTION_ABORTED', `The transaction under the lock ${quoted(key)} was rolled back: ${why}`, {
      key,
      cause,
      page,
    });
    this.reason = reason;
  }
}

/** The refusal to commit while an operation of the function is in flight. @param what its name, or what it is. */
export function inFlightAtReturn(key: string, what: string): TransactionAbortedError {
  return new TransactionAbortedError(
    key,
    'not-awaited',
    `${what} was still in flight when its function returned, because nothing waited for it. ${AWAIT_ALL}`,
    undefined,
    HOW_TO_AWAIT,
  );
}

/** An operation that Prisma has not sent, because `failed` came before it in the same batch. */
export function skippedOperation(
  key: string,
  { name, failed }: { readonly name: string; readonly failed: { readonly name: string; readonly error: unknown } },
): TransactionAbortedError {
  return new TransactionAbortedError(
    key,
    'skipped-operation',
    `\`${name}\` was not sent, because \`${failed.name}\`, which was called together with it, had failed: Prisma stops a batch at the ` +
      'first error. Await an operation that may fail before you call the next one.',
    failed.error,
    'locks.md#operations-that-are-called-together',
  );
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

/** The call would leave the transaction in whose function it was made. */
export class InsideTransactionError extends FencedLockError {
  constructor(what: string, details: ErrorDetails = {}) {
    super('INSIDE_TRANSACTION', what, details);
  }
}

/** What is only there inside the function of a lock was asked for elsewhere. */
export class OutsideLockError extends FencedLockError {
  constructor(what: string, details: ErrorDetails = {}) {
    super('OUTSIDE_LOCK', what, details);
  }
}

/** The key is held by the function in which the call was made, so the call would wait for itself. */
export class ReentryError extends FencedLockError {
  constructor(key: string) {
    super(
      'REENTRY',
      `The lock ${quoted(key)} was requested inside its own function, so the call would wait for itself. A \`$withLock\` of ` +
        "the same client (each `$extends` makes another one) joins one that has all of its keys, unless `reentry: 'throw'` is " +
        'set; no call joins a handle. Use the `tx` of the outer function, and pass it on, or take all keys in the outermost call.',
      { key },
    );
  }
}

/** Another key is held by the function in which the call was made. */
export class NestedError extends FencedLockError {
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
  constructor(what: string, details: ErrorDetails = {}) {
    super('CLOSED', what, details);
  }
}

/**
 * The refusal of an operation that was called on `tx` when its transaction had ended.
 *
 * @param operation its name. Without it, the error is that of one statement, perhaps of an operation that was in flight.
 */
export function lateOperation(key: string, operation?: string): ClosedError {
  const what = operation === undefined ? 'this statement' : `\`${operation}\``;
  return new ClosedError(
    `The transaction of the lock ${quoted(key)} has ended, and ${what} was not sent. Most likely an \`await\` is missing in its ` +
      `function. ${AWAIT_ALL} What runs later, as a hook of the lock does, uses your client (\`prisma\`).`,
    {
      key,
      page: HOW_TO_AWAIT,
    },
  );
}

/** For what is asked of a handle that its owner has released. */
export function releasedHandle(key: string): ClosedError {
  return new ClosedError('This lock was released, so it cannot begin a transaction any more.', { key });
}

/** For a handle that was given back because its client was closed. */
export function givenBackHandle(key: string): ClosedError {
  return new ClosedError(
    'The client was closed, and this lock was given back: it can begin no transaction any more. What it has committed before ' +
      'stays.',
    { key },
  );
}

/** The error of an operation that was called before its transaction ended, and whose result had not arrived by then. */
export function cutShort(key: string, operation: string, cause: unknown): ClosedError {
  return new ClosedError(
    `The transaction of the lock ${quoted(key)} ended while \`${operation}\` was in flight, so it has no result and no ` +
      `effect. ${AWAIT_ALL}`,
    { key, cause, page: HOW_TO_AWAIT },
  );
}

/** SQLSTATE insufficient_privilege. */
const MISSING_RIGHT = '42501';
/** SQLSTATEs of a function or a table that is missing, though the schema is there. */
const MISSING_OBJECT = ['42883', '42P01'];

/** The database objects of this package are missing, or the role may not use them. */
export class NotInstalledError extends FencedLockError {
  constructor(cause: unknown, sqlState?: string) {
    super(
      'NOT_INSTALLED',
      sqlState === MISSING_RIGHT
        ? 'This role may not use the schema `fenced_lock`, or may not call one of its functions: it needs USAGE on the schema and ' +
            'EXECUTE on the functions. `npx fenced-lock doctor`, with the URL of this role, shows the GRANT that is missing.'
        : `${missing(sqlState)} \`npx fenced-lock doctor\` says what is missing.`,
      { cause },
    );
  }
}

function missing(sqlState: string | undefined): string {
  const pushed = 'or, with `prisma db push`, `npx fenced-lock sql | npx prisma db execute --stdin`';
  if (sqlState !== undefined && MISSING_OBJECT.includes(sqlState)) {
    return (
      'The objects in the schema `fenced_lock` of this database are older than this package. Run `npx fenced-lock upgrade` and ' +
      `then \`npx prisma migrate deploy\` ${pushed}.`
    );
  }
  return (
    'The schema `fenced_lock` is missing in this database, or this role may not use it. Run ' +
    '`npx prisma migrate deploy` (before it `npx fenced-lock init`, if no migration makes the schema yet) ' +
    `${pushed}; a role needs USAGE on the schema and EXECUTE on its functions.`
  );
}

/** An option or a key cannot be used. The message names it and says what is allowed. */
export class InvalidOptionError extends FencedLockError {
  /** The name of the option or the argument, such as `leaseTime`, `key` or `fn`; of a write, the model and the field: `Stock.fence`. */
  readonly option: string;

  constructor(option: string, problem: string) {
    super('INVALID_OPTION', `\`${option}\` ${problem}`);
    this.option = option;
  }
}

/** A class of this package. Errors of the base class may have any code. */
interface OwnClass {
  readonly name: string;
  readonly code?: FencedLockErrorCode;
}

/** Our classes. The names are literals, because a minifier renames the classes themselves. */
const CLASSES = new Map<unknown, OwnClass>([
  [FencedLockError, { name: 'FencedLockError' }],
  [LockTimeoutError, { name: 'LockTimeoutError', code: 'LOCK_TIMEOUT' }],
  [LockLostError, { name: 'LockLostError', code: 'LOCK_LOST' }],
  [StaleTokenError, { name: 'StaleTokenError', code: 'STALE_TOKEN' }],
  [LockUnavailableError, { name: 'LockUnavailableError', code: 'LOCK_UNAVAILABLE' }],
  [CommitUnknownError, { name: 'CommitUnknownError', code: 'COMMIT_UNKNOWN' }],
  [TransactionAbortedError, { name: 'TransactionAbortedError', code: 'TRANSACTION_ABORTED' }],
  [HookFailedError, { name: 'HookFailedError', code: 'HOOK_FAILED' }],
  [InsideTransactionError, { name: 'InsideTransactionError', code: 'INSIDE_TRANSACTION' }],
  [OutsideLockError, { name: 'OutsideLockError', code: 'OUTSIDE_LOCK' }],
  [ReentryError, { name: 'ReentryError', code: 'REENTRY' }],
  [NestedError, { name: 'NestedError', code: 'NESTED' }],
  [ClosedError, { name: 'ClosedError', code: 'CLOSED' }],
  [NotInstalledError, { name: 'NotInstalledError', code: 'NOT_INSTALLED' }],
  [InvalidOptionError, { name: 'InvalidOptionError', code: 'INVALID_OPTION' }],
]);

/** A property of the errors of every copy of this package. */
const OURS = Symbol.for('prisma-extension-fenced-lock.error');
Object.defineProperty(FencedLockError.prototype, OURS, { value: true });

// One process may load this package as ESM and as CommonJS, so `instanceof` also accepts errors of the other copy.
Object.defineProperty(FencedLockError, Symbol.hasInstance, {
  value(this: unknown, value: unknown): boolean {
    const own = CLASSES.get(this);
    // A subclass that the user has defined.
    if (own === undefined) return Function.prototype[Symbol.hasInstance].call(this as typeof FencedLockError, value);
    if (typeof value !== 'object' || value === null || !tryRead(() => OURS in value)) return false;
    return own.code === undefined || (value as { readonly code?: unknown }).code === own.code;
  },
});

/** A key for a message: escaped, and at most one line long. */
export function quoted(key: string): string {
  const text = JSON.stringify(key);
  return text.length > 120 ? `${text.slice(0, 117)}…"` : text;
}

/** How long a server was asked in vain, for a message. */
function inTime({ within, tries }: UnavailableDetails): string {
  if (within === undefined) return '';
  if (within <= 0) return ' in time';
  return ` within ${within} ms${tries === undefined ? '' : ` (${tries} ${tries === 1 ? 'try' : 'tries'})`}`;
}

/** What is known of who has a key, as a message shows it. */
function held({ process, here, isHandle, heldFor, expiresIn }: SeenHolder): string {
  const time = `${Math.round(heldFor)} ms`;
  if (here) {
    const whose = `of this process${process === undefined ? '' : ` (${process})`} has had it for ${time}`;
    return isHandle
      ? `A handle ${whose}. If this code has that handle, use its \`$transaction\`.`
      : `Another caller ${whose}.`;
  }
  const end = Number.isFinite(expiresIn)
    ? `its lease ends in ${Math.ceil(expiresIn)} ms unless it is renewed`
    : 'its lease never ends by itself, which none of this package does';
  return `It has been held by ${process ?? 'another process'} for at least ${time}; ${end}.`;
}

/** A thrown value as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/**
 * What `read` finds in a thrown value; `undefined` where that throws. Anything may be thrown, also an object whose getters throw: the
 * caller then gets that object, and not the error of a getter.
 */
export function tryRead<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The `code` of a thrown value, if it has one that can be read. */
export function codeOf(error: unknown): unknown {
  return tryRead(() => (error as { readonly code?: unknown } | null | undefined)?.code);
}

/** A thrown value as text. Anything may be thrown, also an object that has no text. */
export function shown(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'a value without a text';
  }
}

/** The cause's message for this error's message, at most a few lines, because logs often keep the message only. */
export function reason(cause: unknown): string {
  const message: unknown = tryRead(() => cause instanceof Error && cause.message);
  if (typeof message !== 'string') return '';
  // Without the page of an error of this package: the outer error names its own.
  const page = message.endsWith(')') ? message.lastIndexOf(` (see ${DOCS}`) : -1;
  const text = (page < 0 ? message : message.slice(0, page)).replace(/\.$/, '');
  return `: ${text.length > 300 ? `${text.slice(0, 299)}…` : text}`;
}

/** A condition for a message. */
function brief(where: unknown): string {
  const text = JSON.stringify(where, (_, value) => (typeof value === 'bigint' ? String(value) : value)) ?? '';
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
