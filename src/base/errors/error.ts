import { brief, DOCS, readable, tryRead } from './thrown.js';

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
  /** The code of the class's errors; those of this base class may have any. */
  static readonly code: FencedLockErrorCode | undefined = undefined;
  readonly code: FencedLockErrorCode;
  /** The key of the lock; `undefined` if the error is not about a lock. */
  readonly key: string | undefined;

  constructor(code: FencedLockErrorCode, message: string, details: ErrorDetails = {}) {
    const { key, cause, page = `errors.md#${code.toLowerCase()}` } = details;
    super(`${message} (see ${DOCS}${page})`, cause === undefined ? {} : { cause });
    this.name = Object.hasOwn(new.target, 'code') ? nameOf(code) : new.target.name;
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
    // The fields of a subclass, too. The stack is for logs that print errors themselves.
    const { stack: _, ...fields } = this;
    const shown = { name, code, key, message, ...(cause === undefined ? {} : { cause: tryRead(() => brief(cause)) }) };
    const all = Object.entries({ ...shown, ...fields, ...shown });
    return Object.fromEntries(all.map(([field, value]) => [field, readable(value)]));
  }
}

/**
 * Returns the error of this package that `error` is, or that a database library has wrapped: Prisma in a
 * `PrismaClientKnownRequestError` with the same `code`, Drizzle and TypeORM in an error that names the statement; otherwise
 * `undefined`. Errors inside the lock's function arrive in the form of the library.
 */
export function toFencedLockError(error: unknown): FencedLockError | undefined {
  if (error instanceof FencedLockError) return error;
  const ours = tryRead(() => wrappedBy((error ?? {}) as Wrapper));
  return ours instanceof FencedLockError ? ours : undefined;
}

interface Wrapper {
  readonly meta?: { readonly fencedLock?: unknown } | null;
  readonly query?: unknown;
  readonly cause?: unknown;
  readonly driverError?: unknown;
}

/** What a database library has put into an error of its own: Prisma, or Drizzle and TypeORM, whose errors name the statement. */
function wrappedBy({ meta, query, cause, driverError }: Wrapper): unknown {
  return meta?.fencedLock ?? (typeof query === 'string' ? (driverError ?? cause) : undefined);
}

/** A literal, as the code is one: a minifier renames the classes. */
function nameOf(code: FencedLockErrorCode): string {
  return `${code.toLowerCase().replaceAll(/(?:^|_)(.)/g, (_, first: string) => first.toUpperCase())}Error`;
}

/** A property of the errors of every copy of this package. */
const OURS = Symbol.for('prisma-extension-fenced-lock.error');
Object.defineProperty(FencedLockError.prototype, OURS, { value: true });

// One process may load this package as ESM and as CommonJS, so `instanceof` also accepts errors of the other copy.
Object.defineProperty(FencedLockError, Symbol.hasInstance, {
  value(this: typeof FencedLockError, value: unknown): boolean {
    // A subclass that the user has defined.
    const isOwn = this === FencedLockError || Object.hasOwn(this, 'code');
    if (!isOwn) return Function.prototype[Symbol.hasInstance].call(this, value);
    if (typeof value !== 'object' || value === null || !tryRead(() => OURS in value)) return false;
    return this.code === undefined || (value as { readonly code?: unknown }).code === this.code;
  },
});
