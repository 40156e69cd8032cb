// The SQLSTATEs of Postgres on which it depends what happens next.
// https://www.postgresql.org/docs/current/errcodes-appendix.html

/** The class of errors of the connection: the beginning of their SQLSTATEs. */
export const CONNECTION_EXCEPTION = '08';
/** Of a database that an operator or a hoster has made read-only, for example because its disk is full. */
export const READ_ONLY = '25006';
/** Among others, of a standby, when it plans to read the UNLOGGED table of the crash epoch. */
export const NOT_SUPPORTED = '0A000';
export const IDLE_IN_TRANSACTION_TIMEOUT = '25P03';
/** Since PostgreSQL 17. */
export const TRANSACTION_TIMEOUT = '25P04';
export const SERIALIZATION_FAILURE = '40001';
export const DEADLOCK = '40P01';
const INSUFFICIENT_PRIVILEGE = '42501';
/** Of the server, of the database or of the role. */
export const TOO_MANY_CONNECTIONS = '53300';
export const LOCK_NOT_AVAILABLE = '55P03';
export const QUERY_CANCELED = '57014';
/** The end of a session that somebody asked for, or a shutdown of the server. */
export const ADMIN_SHUTDOWN = '57P01';
export const CRASH_SHUTDOWN = '57P02';
/** The server starts or stops. */
export const CANNOT_CONNECT_NOW = '57P03';
export const IDLE_SESSION_TIMEOUT = '57P05';

/** A missing schema, function or table, or a missing right to use it. */
export const NOT_INSTALLED: ReadonlySet<string> = new Set(['3F000', '42883', '42P01', INSUFFICIENT_PRIVILEGE]);
