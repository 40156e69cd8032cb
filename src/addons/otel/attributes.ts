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

/** SQLSTATE, or a code of Prisma. Other codes are an application's own, such as a row's id. */
const OF_THE_DATABASE = /^[A-Z\d]{5}$/;

/** What went wrong: a code such as `LOCK_TIMEOUT`, `P2002` or `40001`, else the name of the error's class. */
export function errorType(error: unknown): Attributes {
  const type = toFencedLockError(error)?.code ?? tryRead(() => typeOfAnother(error));
  return { [ERROR_TYPE]: type !== undefined && /^\w{1,60}$/.test(type) ? type : OTHER };
}

/** What is thrown here would end the process: a getter of the error's may do that. */
function typeOfAnother(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && OF_THE_DATABASE.test(code) ? code : error.constructor.name;
}
