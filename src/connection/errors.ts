import { tryRead } from '../base/errors.js';
import {
  ADMIN_SHUTDOWN,
  CANNOT_CONNECT_NOW,
  CONNECTION_EXCEPTION,
  CRASH_SHUTDOWN,
  IDLE_IN_TRANSACTION_TIMEOUT,
  IDLE_SESSION_TIMEOUT,
  SERIALIZATION_FAILURE,
  TRANSACTION_TIMEOUT,
} from '../database/sql-states.js';

/** What is known of an error. */
interface Fields {
  readonly code?: unknown;
  /** Prisma's adapters name the kinds of errors. */
  readonly kind?: unknown;
  readonly severity?: unknown;
  /** The SQLSTATE, in an error of Prisma. */
  readonly originalCode?: unknown;
  readonly detail?: unknown;
  readonly message?: unknown;
}

/**
 * An error with Postgres's fields. Prisma wraps them in two ways; Drizzle and others give pg's own error as the cause; the rescue
 * connection and pg do not wrap them.
 */
interface Wrapped extends Fields {
  readonly meta?: { readonly driverAdapterError?: { readonly cause?: Fields } };
  readonly cause?: Fields;
}

/** The error's own fields, and those of the error of the driver. Of an error of the caller that cannot be read there are none. */
function read(error: unknown): {
  readonly own: { readonly code?: unknown; readonly message?: string };
  readonly driver: Fields;
  readonly texts: string;
} {
  const own = (error ?? {}) as Wrapped;
  const fields = tryRead(() => {
    const driver = own.meta?.driverAdapterError?.cause ?? own.cause ?? {};
    const { code, severity, detail, message } = own;
    return {
      own: { code, message: String(message) },
      driver: { severity, detail, originalCode: stateOf(own) ?? stateOf(driver), ...driver },
      texts: `${String(message)}\n${String(driver.message)}`,
    };
  });
  return fields ?? { own: {}, driver: {}, texts: '' };
}

/** The `code` of an error of pg itself, which has a severity, is the SQLSTATE. */
function stateOf({ originalCode, severity, code }: Fields): unknown {
  return originalCode ?? (severity === undefined ? undefined : code);
}

/** The SQLSTATE of an error, if it has one. */
export function sqlState(error: unknown): string | undefined {
  const { own, driver } = read(error);
  if (typeof driver.originalCode === 'string') return driver.originalCode;
  return own.code === 'P2034' ? SERIALIZATION_FAILURE : undefined;
}

/** The DETAIL of a Postgres error, if it has one. */
export function sqlDetail(error: unknown): string | undefined {
  const { detail } = read(error).driver;
  return typeof detail === 'string' ? detail : undefined;
}

/** Whether the server answered a statement with this error, and goes on serving the connection. */
export function isStatementError(error: unknown): boolean {
  return read(error).driver.severity === 'ERROR' && !sqlState(error)?.startsWith(CONNECTION_EXCEPTION);
}

/** Whether the error says that no row matched. */
export function isNoMatch(error: unknown): boolean {
  return read(error).own.code === 'P2025';
}

/** Codes, kinds of Prisma's adapters and SQLSTATEs for an unreachable server. `SocketTimeout` is ETIMEDOUT. */
const NOT_THERE: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'P1001',
  'P1002',
  'DatabaseNotReachable',
  'SocketTimeout',
  CRASH_SHUTDOWN,
  CANNOT_CONNECT_NOW,
]);

/** Whether the error says that no connection could be made: the server is down, starting or stopping. */
export function isUnavailable(error: unknown): boolean {
  return isOneOf(NOT_THERE, error) || isRefusalOfPooler(error);
}

/** The same for a connection that was closed. */
const CLOSED: ReadonlySet<unknown> = new Set([
  'P1017',
  'ECONNRESET',
  'EPIPE',
  'ConnectionClosed',
  ADMIN_SHUTDOWN,
  IDLE_IN_TRANSACTION_TIMEOUT,
  TRANSACTION_TIMEOUT,
  IDLE_SESSION_TIMEOUT,
]);

/** Whether the error says that the connection was closed. For some cases, pg has only a message. */
export function isDisconnect(error: unknown): boolean {
  if (isOneOf(CLOSED, error) || isRefusalOfPooler(error)) return true;
  return /Connection terminated|is not queryable/.test(read(error).own.message ?? '');
}

function isOneOf(known: ReadonlySet<unknown>, error: unknown): boolean {
  const { own, driver } = read(error);
  return known.has(own.code) || known.has(driver.kind) || known.has(sqlState(error));
}

/** What PgBouncer says of a wrong setting of the client, for which no waiting helps. */
const WRONG_SETTING = /authentication failed|unsupported startup parameter|no such (user|database)|SSL required/;

/**
 * Whether a pooler has closed the connection, because it has no server for it or has lost that server. PgBouncer has one
 * SQLSTATE for all of this (08P01). With the severity ERROR, the same SQLSTATE is about a statement of the client.
 */
function isRefusalOfPooler(error: unknown): boolean {
  const { driver, texts } = read(error);
  if (driver.severity !== 'FATAL' || sqlState(error)?.startsWith(CONNECTION_EXCEPTION) !== true) return false;
  return !WRONG_SETTING.test(texts);
}

/** Whether an error on a connection that was there says that it is gone. */
export function isLoss(error: unknown): boolean {
  return isDisconnect(error) || isUnavailable(error);
}

/** Whether the error is that of a pool of pg after its `end()`. It has only a message. */
export function isEnded(error: unknown): boolean {
  return /Cannot use a pool after calling end/.test(read(error).texts);
}
