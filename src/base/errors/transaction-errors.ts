import { FencedLockError } from './error.js';
import { quoted, reason } from './thrown.js';
import { ClosedError } from './usage-errors.js';

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
  static override readonly code = 'STALE_TOKEN';
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

/** The answer to COMMIT was lost, and it cannot be found out whether the transaction has committed. */
export class CommitUnknownError extends FencedLockError {
  static override readonly code = 'COMMIT_UNKNOWN';
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
    ? ' Somebody waits for a connection of the pool. If it is the function itself, by an operation outside of the transaction: use what the function is given.'
    : '';
  return `it had not ended within its timeout of ${timeout} ms.${second} Make the work shorter, or raise \`timeout\`.`;
}

/** The transaction was rolled back although the function did not throw. */
export class TransactionAbortedError extends FencedLockError {
  static override readonly code = 'TRANSACTION_ABORTED';
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

/**
 * The transaction has committed, and hooks of it failed. Only with `hookErrors: 'throw'`; the commit stands, so the work must
 * not run again.
 */
export class HookFailedError extends FencedLockError {
  static override readonly code = 'HOOK_FAILED';
  /** What the function of the call returned. */
  readonly value: unknown;
  /** What the hooks threw, in the order in which they ran. `cause` is the first. */
  readonly errors: readonly unknown[];

  /** @param what has failed, if that is no hook. */
  constructor(
    key: string,
    value: unknown,
    errors: readonly unknown[],
    what = errors.length === 1 ? 'a hook of it' : `${errors.length} hooks of it`,
  ) {
    super(
      'HOOK_FAILED',
      `The transaction under the lock ${quoted(key)} has committed, but ${what} failed${reason(errors[0])}. The commit ` +
        'stands: do not run the work again. Its result is in `value`, what was thrown in `errors`.',
      { key, cause: errors[0] },
    );
    this.value = value;
    this.errors = errors;
  }
}

/** What to do about an operation that the function did not wait for. */
const AWAIT_ALL = 'Await every operation of the function, and every helper that has one.';
const HOW_TO_AWAIT = 'locks.md#await-every-operation';

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
 * The refusal of an operation that was called on `tx` when its transaction had ended.
 *
 * @param operation its name. Without it, the error is that of one statement, perhaps of an operation that was in flight.
 */
export function lateOperation(key: string, operation?: string): ClosedError {
  const what = operation === undefined ? 'this statement' : `\`${operation}\``;
  return new ClosedError(
    `The transaction of the lock ${quoted(key)} has ended, and ${what} was not sent. Most likely an \`await\` is missing in its ` +
      `function. ${AWAIT_ALL} What runs later, as a hook of the lock does, works outside of the transaction.`,
    {
      key,
      page: HOW_TO_AWAIT,
    },
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

/** A condition for a message. */
function brief(where: unknown): string {
  const text = JSON.stringify(where, (_, value) => (typeof value === 'bigint' ? String(value) : value)) ?? '';
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
