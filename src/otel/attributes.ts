import type { Attributes } from '@opentelemetry/api';

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

/** What went wrong, if something did: a code such as `LOCK_TIMEOUT` or `P2002`, else the name of the error's class. */
export function errorType(error: unknown): Attributes {
  return error === undefined ? {} : { [ERROR_TYPE]: nameOf(error) };
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  const { code } = error as { readonly code?: unknown };
  // An application may put anything there, a row's id too.
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,39}$/.test(code) ? code : error.name;
}
