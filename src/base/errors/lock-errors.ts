import { FencedLockError } from './error.js';
import { quoted, reason } from './thrown.js';
import { StaleTokenError } from './transaction-errors.js';

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
  static override readonly code = 'LOCK_TIMEOUT';
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
    `handle. ${IF_OPEN}. ${WHAT_STAYS}`,
};
const REFUSED_BY_POSTGRES = `Postgres has refused its token (see the cause). ${IF_OPEN}, under a lock that is taken anew. ${WHAT_STAYS}`;

/** The lease ended before the work did. A transaction that was open under it was rolled back. */
export class LockLostError extends FencedLockError {
  static override readonly code = 'LOCK_LOST';
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

/** What is known about a server that gave no usable answer, and what to say of it. */
export interface UnavailableDetails {
  /** Default: `Redis`. */
  readonly server?: 'Redis' | 'Postgres';
  /** What the call has done so far. Default: `Nothing was done`. */
  readonly done?: string | undefined;
  /** For how long the server was asked in vain; milliseconds. */
  readonly within?: number;
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
  'connect the database client to the writable primary, and look whether somebody, or a full disk, has made the ' +
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
  static override readonly code = 'LOCK_UNAVAILABLE';
  /** The server that gave no usable answer. */
  readonly server: 'Redis' | 'Postgres';

  constructor(key: string | undefined, cause: unknown, details: UnavailableDetails = {}) {
    const { server = 'Redis', done = 'Nothing was done', isReadOnly = false } = details;
    const whose = server === 'Redis' ? 'client given as `redis`' : 'database client';
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

/** SQLSTATE insufficient_privilege. */
const MISSING_RIGHT = '42501';
/** SQLSTATEs of a function or a table that is missing, though the schema is there. */
const MISSING_OBJECT = ['42883', '42P01'];

/** The database objects of this package are missing, or the role may not use them. */
export class NotInstalledError extends FencedLockError {
  static override readonly code = 'NOT_INSTALLED';
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
  const pushed =
    'or, with `prisma db push`, `npx fenced-lock sql | npx prisma db execute --stdin`, or, without Prisma, apply what ' +
    '`npx fenced-lock sql` prints';
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

/** How long a server was asked in vain, for a message. */
function inTime({ within }: UnavailableDetails): string {
  if (within === undefined) return '';
  return within <= 0 ? ' in time' : ` within ${within} ms`;
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
