import type { Attributes } from '@opentelemetry/api';
import { toFencedLockError, tryRead } from '../../base/errors.js';

/** The attributes of this package. */
export const GROUP = 'fenced_lock.group';
export const KEYS = 'fenced_lock.keys';
export const OPERATION = 'fenced_lock.operation';
export const OUTCOME = 'fenced_lock.outcome';
export const TOKEN = 'fenced_lock.token';
export const VIA = 'fenced_lock.via';
/** The conventions' own. https://opentelemetry.io/docs/specs/semconv/registry/attributes/error/ */
const ERROR_TYPE = 'error.type';

/** What the group of a key is. */
export type GroupOf = (key: string) => string;

/** OpenTelemetry's word for a value that is not told apart. */
export const OTHER = '_OTHER';

/** SQLSTATE, by its classes in PostgreSQL, or a code of Prisma. */
const OF_THE_DATABASE =
  /^(?:P\d{4}|(?:0[0-389ABFLPZ]|10|2[0-8BDF]|3[489BDF]|4[024]|5[34578]|72|F0|HV|P0|XX)[\dA-Z]{3})$/;

/** A class that sets no name has inherited one of these. */
const OF_JAVASCRIPT: ReadonlySet<unknown> = new Set(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError].map(
    ({ name }) => name,
  ),
);

/** What went wrong, if something did: a code such as `LOCK_TIMEOUT`, `P2002` or `40001`, else the name of the error's class. */
export function errorType(error: unknown): Attributes {
  return error === undefined ? {} : typeOfError(error);
}

/** The same of something that is known to have gone wrong. */
export function typeOfError(error: unknown): Attributes {
  return { [ERROR_TYPE]: typeOf(error) };
}

function typeOf(error: unknown): string {
  const own = toFencedLockError(error);
  if (own) return own.code;
  // What a subscriber throws would end the process.
  return tryRead(() => (error instanceof Error ? typeOfAnother(error) : undefined)) ?? OTHER;
}

function typeOfAnother(error: Error & { readonly code?: unknown }): string {
  const { code } = error;
  // An application may put anything into its own, a row's id too: there would be as many time series.
  if (typeof code === 'string' && OF_THE_DATABASE.test(code)) return code;
  const type = OF_JAVASCRIPT.has(error.name) ? error.constructor.name || error.name : error.name;
  return typeof type === 'string' && /^[A-Za-z]{1,60}$/.test(type) ? type : OTHER;
}
