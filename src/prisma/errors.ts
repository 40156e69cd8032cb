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

/** An error with Postgres's fields. Prisma wraps them in three ways; the rescue connection and pg do not wrap them. */
interface Wrapped {
  readonly code?: unknown;
  /** Set on an error of pg itself. Its `code` is the SQLSTATE then. */
  readonly severity?: unknown;
  readonly detail?: unknown;
  readonly message?: unknown;
  readonly meta?: { readonly driverAdapterError?: { readonly cause?: DriverCause } };
  readonly cause?: DriverCause;
}

interface DriverCause {
  readonly kind?: unknown;
  readonly severity?: unknown;
  readonly originalCode?: unknown;
  readonly detail?: unknown;
  readonly message?: unknown;
}

/** What is known of an error. */
interface Fields {
  readonly code?: unknown;
  /** The SQLSTATE. */
  readonly state?: unknown;
  readonly severity?: unknown;
  readonly detail?: unknown;
  readonly message?: unknown;
  readonly kind?: unknown;
  readonly causeMessage?: unknown;
}

/** Of an error of the caller that cannot be read there are none. */
function fieldsOf(error: unknown): Fields {
  const read = (): Fields => {
    const { code, severity, detail, message, meta, cause } = (error ?? {}) as Wrapped;
    const inner = meta?.driverAdapterError?.cause;
    return {
      code,
      state: inner?.originalCode ?? cause?.originalCode ?? (severity === undefined ? undefined : code),
      severity: inner?.severity ?? cause?.severity ?? severity,
      detail: inner?.detail ?? cause?.detail ?? detail,
      message,
      kind: inner?.kind ?? cause?.kind,
      causeMessage: cause?.message,
    };
  };
  return tryRead(read) ?? {};
}

/** The SQLSTATE of an error, if it has one. */
export function sqlState(error: unknown): string | undefined {
  const { code, state } = fieldsOf(error);
  if (typeof state === 'string') return state;
  return code === 'P2034' ? SERIALIZATION_FAILURE : undefined;
}

/** The DETAIL of a Postgres error, if it has one. */
export function sqlDetail(error: unknown): string | undefined {
  const { detail } = fieldsOf(error);
  return typeof detail === 'string' ? detail : undefined;
}

/** Whether the server answered a statement with this error, and goes on serving the connection. */
export function isStatementError(error: unknown): boolean {
  return fieldsOf(error).severity === 'ERROR' && !sqlState(error)?.startsWith(CONNECTION_EXCEPTION);
}

/** Whether the error says that no row matched. */
export function isNoMatch(error: unknown): boolean {
  return fieldsOf(error).code === 'P2025';
}

/** Codes for an unreachable server. */
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
]);

/** The same of Prisma's adapters. `SocketTimeout` is ETIMEDOUT. */
const NOT_THERE_KINDS: ReadonlySet<unknown> = new Set(['DatabaseNotReachable', 'SocketTimeout']);

const NOT_SERVING: ReadonlySet<string> = new Set([CRASH_SHUTDOWN, CANNOT_CONNECT_NOW]);

/** Whether the error says that no connection could be made: the server is down, starting or stopping. */
export function isUnavailable(error: unknown): boolean {
  const { code, kind } = fieldsOf(error);
  if (NOT_THERE.has(code) || NOT_THERE_KINDS.has(kind) || NOT_SERVING.has(sqlState(error) ?? '')) return true;
  return isRefusalOfPooler(error);
}

/** What PgBouncer says of a wrong setting of the client, for which no waiting helps. */
const WRONG_SETTING = /authentication failed|unsupported startup parameter|no such (user|database)|SSL required/;

/**
 * Whether a pooler has closed the connection, because it has no server for it or has lost that server. PgBouncer has one
 * SQLSTATE for all of this (08P01). With the severity ERROR, the same SQLSTATE is about a statement of the client.
 */
function isRefusalOfPooler(error: unknown): boolean {
  const { severity, message, causeMessage } = fieldsOf(error);
  if (severity !== 'FATAL' || sqlState(error)?.startsWith(CONNECTION_EXCEPTION) !== true) return false;
  return ![message, causeMessage].some((text) => typeof text === 'string' && WRONG_SETTING.test(text));
}

/** What `pool.connect()` says after `pool.end()`. */
const AFTER_END = /Cannot use a pool after calling end/;

const SESSION_ENDED: ReadonlySet<string> = new Set([
  ADMIN_SHUTDOWN,
  IDLE_IN_TRANSACTION_TIMEOUT,
  TRANSACTION_TIMEOUT,
  IDLE_SESSION_TIMEOUT,
]);

/** Whether the error says that the connection was closed. For some cases, pg has only a message. */
export function isDisconnect(error: unknown): boolean {
  const { code, message, kind } = fieldsOf(error);
  if (code === 'P1017' || kind === 'ConnectionClosed' || SESSION_ENDED.has(sqlState(error) ?? '')) return true;
  if (code === 'ECONNRESET' || code === 'EPIPE' || isRefusalOfPooler(error)) return true;
  return typeof message === 'string' && /Connection terminated|is not queryable/.test(message);
}

/** Whether an error on a connection that was there says that it is gone. */
export function isLoss(error: unknown): boolean {
  return isDisconnect(error) || isUnavailable(error);
}

/** Whether the error is that of a pool of pg after its `end()`. It has only a message. */
export function isEnded(error: unknown): boolean {
  const { message, causeMessage } = fieldsOf(error);
  return [message, causeMessage].some((text) => typeof text === 'string' && AFTER_END.test(text));
}
